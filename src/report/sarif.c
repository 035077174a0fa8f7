#include "report/report.h"

#include <string.h>

/* SARIF 2.1.0 (OASIS): one run, one result at most, for code hosts and editors that show such files. */
static json_t *sarif_location(const struct place *p)
{
	return json_pack("{s:{s:{s:o}, s:{s:I}}}", "physicalLocation", "artifactLocation", "uri",
			 text_json(p->file), "region", "startLine",
			 (json_int_t)(p->line == INT_UNKNOWN || p->line < 1 ? 1 : p->line));
}

void report_sarif(const struct report *r, struct buf *out)
{
	const struct verdict *v = &r->verdict;
	json_t *results = json_array(), *rules = json_array();

	if (v->known) {
		json_t *result = json_pack("{s:s, s:s, s:{s:o}}", "ruleId", v->cause, "level",
					   strcmp(v->confidence, "possible") ? "error" : "warning", "message",
					   "text", text_json(v->summary));

		json_array_append_new(rules, json_pack("{s:s, s:{s:o}, s:{s:o}}", "id", v->cause, "shortDescription",
						       "text", text_json(v->title), "help", "text", text_json(v->fix)));
		if (v->location.file)
			json_object_set_new(result, "locations", json_pack("[o]", sarif_location(&v->location)));
		if (v->reported_location.file)
			json_object_set_new(result, "relatedLocations",
					    json_pack("[o]", sarif_location(&v->reported_location)));
		json_array_append_new(results, result);
	}
	json_t *json = json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "$schema",
				 "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool",
				 "driver", "name", "cuwhy", "version", PACKAGE_VERSION, "rules", rules, "results",
				 results);
	report_dump(json, out);
}
