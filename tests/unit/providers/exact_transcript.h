/* exact_transcript.h - a session of a driver as a text: what it is given, and what must come of it.
 *
 *   # a comment; an empty line is nothing
 *   with NAME VALUE        configuration, before anything else: runtime, interaction, model, options (JSON), resume, mcp,
 *                          instructions, models (blank-separated), confined (no value)
 *   include FILE           the inputs of another file of the directory; what comes of them is judged there
 *   begin                  the session begins
 *   < LINE                 the program wrote this
 *   < @repeat N TEXT       the same, with every @@ in TEXT replaced by N times the letter x
 *   order turn KEY TEXT    also: order steer KEY TEXT, order interrupt, order answer REQUEST DECISION, order answers REQUEST
 *                          JSON, order select RUNTIME INTERACTION [MODEL [OPTIONS]], order attach KEY MIME PATH TEXT (a
 *                          turn with a file), order close
 *   after MS               time passes; the driver is told when it is due
 *   exit CODE STDERR       the program ended; also: signal NUMBER STDERR, stdout-closed STDERR
 *   > LINE                 the driver wrote this line; >$ when it holds the place of the secret
 *   * EVENT                the driver told this event, as exact_transcript.c prints it
 *   - stdin closed         also: - kill
 *
 * What follows an input must be exactly what comes of it. With DAIS_WRITE_TRANSCRIPTS=1 the files are written anew, for
 * the eye of whoever changes a driver. */
#ifndef DAIS_TESTS_EXACT_TRANSCRIPT_H
#define DAIS_TESTS_EXACT_TRANSCRIPT_H

#include "providers/provider.h"

/* The file agrees, and it agrees when the state is saved and loaded into a new agent at any of its inputs, or at all. */
void transcript_check(const struct driver *driver, const char *path);

#endif
