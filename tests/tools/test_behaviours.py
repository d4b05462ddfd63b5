"""The work graph promises numbered behaviours; a comment or docstring "behaviour 3.9" says which test stands for which.

1 ids, envelope, validation; 2 idempotency; 3 transitions and gates; 4 cascades and structure; 5 notes,
dependencies, documents, rules; 6 claims, leases, seats, search.
"""
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
PROMISED = {1: 21, 2: 8, 3: 27, 4: 24, 5: 24, 6: 32}
CLAIM = re.compile(r"behaviours? ((?:\d\.\d+(?:, | and )?)+)")


def claimed():
    """number: files whose tests say that they stand for it"""
    found = {}
    for path in [*TESTS.glob("unit/*/*.c"), *TESTS.glob("scenario/test_*.py")]:
        for claim in CLAIM.findall(path.read_text()):
            for number in re.findall(r"\d\.\d+", claim):
                found.setdefault(number, set()).add(path.name)
    return found


def test_every_numbered_behaviour_has_its_test():
    promised = {f"{chapter}.{n}" for chapter, count in PROMISED.items() for n in range(1, count + 1)}
    found = claimed()
    assert sorted(promised - found.keys()) == [], "promised, and no test says it stands for it"
    assert sorted(found.keys() - promised) == [], "a number that nothing promises"


# The MCP side promises its behaviours by name; a test is called after one (test_discover_cold) or names it in its words.
NAMED = {
    "6.1": """
        discover-cold discover-then-init init-after-modern init-future init-modern-version init-each two-
        eras-one-port claim-not-string caps-missing meta-missing clientinfo-absent claim-legacy-version
        removed-methods legacy-shape caps-per-request""",
    "6.2": """
        accept-variants ctype-charset hdr-mismatch origin-null origin-evil origin-localhost-port host-evil
        host-trailing-dot preflight-noauth cors-on-401 sse-early-headers sse-keepalive sse-close-after-
        result modern-disconnect-cancels legacy-disconnect-continues replay-isolated replay-unknown-id get-
        twice get-no-session get-modern session-restart session-unknown session-foreign-principal init-with-
        stale-id delete-then-use parallel-init batch-table notif-202 response-post-unknown auth-401-static
        token-expires-midstream token-in-query listen-ack-first listen-filter listen-id-zero listen-id-
        string listen-shutdown-result listen-over-limit listen-foreign-uri-omitted pipelined-requests
        expect-100-continue chunked-body-with-trailers http-1-0-client""",
    "6.3": """
        purity split-bytes glued crlf bom blank-lines eof-exit eof-during-wait sigint-sigterm-100ms parent-
        kill9 forking-thread-ends reader-stalls scrubbed-env cwd-unwritable two-processes-one-db bad-line-
        then-good oversize-line cancel-done-request duplicate-inflight-id start-no-db-permission""",
    "6.4": """
        lint-schemas lint-names lint-annotations lint-sizes list-order-stable descriptions-no-local-paths
        text-equals-structured error-validates coerce-table unknown-arg null-optional args-missing progress
        wait-slice resource-missing template-encoded-slash template-1mb-uri read-forbidden-equals-read-
        missing subscribe-update-coalesced cursor-tampered cursor-foreign-filter complete-100-cap
        approve-accept approve-no-capability approve-tampered-state approve-changed-arguments
        approve-missing-key approve-extra-key task-durable task-foreign task-undeclared
        task-cancel-terminal task-iserror-completed task-update-partial""",
    "6.5": """
        slow-loris slow-body slow-reader huge-header huge-uri many-sessions reconnect-storm listen-storm
        cancel-storm progress-flood id-collision fd-exhaustion disk-full db-locked clock-jump utf8-invalid""",
}


def test_every_named_behaviour_of_mcp_has_its_test():
    places = [*TESTS.glob("unit/*/*.c"), *TESTS.glob("scenario/test_*.py"), TESTS / "conformance/sdk.mjs"]
    text = "\n".join(re.sub(r"[^a-z0-9]+", "_", path.read_text().lower()) for path in places)
    missing = [f"{chapter} {name}" for chapter, names in NAMED.items() for name in names.split() if name.replace("-", "_") not in text]
    assert missing == []
