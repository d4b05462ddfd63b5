/* The story that this server is for, call by call. */
#include "cli/demo.h"

#include <stddef.h>

#define RULES \
	"work_item_schemas:\\n  task:\\n    notes:\\n" \
	"      - { key: plan, role: queue, required: true, description: What will be done }\\n" \
	"      - { key: done, role: work, required: true, description: What was done }\\n"

const struct demo_step demo_steps[] = {
	{
		.tells = "A project, and rules: a task needs a plan to start and a report to finish.",
		.tool = "items_write",
		.arguments = "{\"ops\":[{\"op\":\"create\",\"title\":\"Lighthouse\",\"type\":\"project\"}]}",
		.shows = {"results.0.role"},
		.keeps = {{"{project}", "results.0.id"}},
	},
	{
		.tool = "config",
		.arguments = "{\"ops\":[{\"op\":\"push\",\"rootId\":\"{project}\",\"yaml\":\"" RULES "\"}]}",
		.shows = {"results.0.version"},
	},
	{
		.tells = "A feature with two tasks; the map has to wait for the horn.",
		.tool = "items_write",
		.arguments = "{\"ops\":[{\"op\":\"create_tree\",\"root\":{\"title\":\"Fog signal\",\"parentId\":\"{project}\"},"
			     "\"children\":[{\"ref\":\"horn\",\"title\":\"Sound the horn\",\"type\":\"task\"},"
			     "{\"ref\":\"map\",\"title\":\"Show it on the map\",\"type\":\"task\"}],"
			     "\"deps\":[{\"from\":\"horn\",\"to\":\"map\"}]}]}",
		.shows = {"results.0.children.0.expectedNotes"},
		.keeps = {{"{feature}", "results.0.root.id"}, {"{horn}", "results.0.children.0.id"},
			{"{map}", "results.0.children.1.id"}},
	},
	{
		.tells = "And something else that is under way.",
		.tool = "items_write",
		.arguments = "{\"ops\":[{\"op\":\"create\",\"title\":\"Paint the tower\",\"parentId\":\"{project}\"}]}",
		.keeps = {{"{paint}", "results.0.id"}},
	},
	{
		.tool = "advance",
		.arguments = "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"{paint}\",\"trigger\":\"start\"}]}",
		.shows = {"results.0.newRole"},
		.expects = {{"results.0.newRole", "work"}},
	},
	{
		.tells = "An agent starts the horn without a plan: refused, and told which note is missing.",
		.tool = "advance",
		.arguments = "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"{horn}\",\"trigger\":\"start\"}]}",
		.shows = {"error.code", "error.detail.missing", "error.message"},
		.expects = {{"error.code", "gate_blocked"}, {"error.detail.missing.0.key", "plan"}},
	},
	{
		.tells = "It writes the plan, and is let through; the feature starts with its first task.",
		.tool = "notes_write",
		.arguments = "{\"ops\":[{\"op\":\"upsert\",\"itemId\":\"{horn}\",\"key\":\"plan\","
			     "\"body\":\"Two blasts a minute below 1 km of sight.\"}]}",
		.shows = {"results.0.itemContext.noteProgress"},
	},
	{
		.tool = "advance",
		.arguments = "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"{horn}\",\"trigger\":\"start\"}]}",
		.shows = {"results.0.newRole", "results.0.cascadeEvents.0.title", "results.0.cascadeEvents.0.to"},
		.expects = {{"results.0.newRole", "work"}, {"results.0.cascadeEvents.*.itemId", "{feature}"}},
	},
	{
		.tells = "Another agent wants the map, plan in hand: it has to wait.",
		.tool = "notes_write",
		.arguments = "{\"ops\":[{\"op\":\"upsert\",\"itemId\":\"{map}\",\"key\":\"plan\","
			     "\"body\":\"A ring around the tower while the horn sounds.\"}]}",
	},
	{
		.tool = "advance",
		.arguments = "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"{map}\",\"trigger\":\"start\"}]}",
		.shows = {"error.code", "error.message"},
		.expects = {{"error.code", "dependency_unmet"}},
	},
	{
		.tells = "The horn is reported and finished; the map is free.",
		.tool = "notes_write",
		.arguments = "{\"ops\":[{\"op\":\"upsert\",\"itemId\":\"{horn}\",\"key\":\"done\",\"body\":\"It sounds.\"}]}",
	},
	{
		.tool = "advance",
		.arguments = "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"{horn}\",\"trigger\":\"complete\"}]}",
		.shows = {"results.0.newRole", "results.0.unblockedItems.0.title"},
		.expects = {{"results.0.newRole", "terminal"}, {"results.0.unblockedItems.*.itemId", "{map}"}},
	},
	{
		.tool = "advance",
		.arguments = "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"{map}\",\"trigger\":\"start\"}]}",
		.shows = {"results.0.newRole"},
		.expects = {{"results.0.newRole", "work"}},
	},
	{
		.tells = "The map is finished too; with its last task the feature closes.",
		.tool = "notes_write",
		.arguments = "{\"ops\":[{\"op\":\"upsert\",\"itemId\":\"{map}\",\"key\":\"done\",\"body\":\"It shows.\"}]}",
	},
	{
		.tool = "advance",
		.arguments = "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"{map}\",\"trigger\":\"complete\"}]}",
		.shows = {"results.0.newRole", "results.0.cascadeEvents.0.title", "results.0.cascadeEvents.0.to"},
		.expects = {{"results.0.newRole", "terminal"}, {"results.0.cascadeEvents.0.itemId", "{feature}"},
			{"results.0.cascadeEvents.0.to", "terminal"}},
	},
	{
		.tells = "A new client that knows nothing asks where everything stands.",
		.tool = "items_read",
		.arguments = "{\"select\":\"context\",\"rootId\":\"{project}\"}",
		.shows = {"data.active", "data.counts"},
		.expects = {{"data.active.*.id", "{paint}"}},
	},
	{.tells = "kill -9 of the server, and a new start: nothing is lost."},
	{
		.tool = "items_read",
		.arguments = "{\"select\":\"get\",\"itemId\":\"{feature}\"}",
		.shows = {"data.item.title", "data.item.role"},
		.expects = {{"data.item.role", "terminal"}},
	},
	{
		.tool = "notes_read",
		.arguments = "{\"select\":\"get\",\"itemId\":\"{map}\",\"key\":\"done\"}",
		.shows = {"data.note.body"},
		.expects = {{"data.note.body", "It shows."}},
	},
	{0},
};
