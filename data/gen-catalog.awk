# Turns the catalogue's tables into C: awk -f gen-catalog.awk causes.tsv kernels.tsv conditions.tsv
# assert-sites.tsv error-texts.tsv > catalog_rows.c. causes.tsv comes first, since the others name its ids.
#
# Every table is tab separated with its column names in the first line. A row with a wrong number of
# cells, an unknown cause, kind or confidence ends the build with file and line.

BEGIN {
	FS = "\t"
	columns["causes.tsv"] = "id title meaning fix fix_plain steps"
	columns["kernels.tsv"] = "file kernel words"
	columns["conditions.tsv"] = "condition cause op argument low high words"
	columns["assert-sites.tsv"] = "lib versions file kernel condition message aten_op python_api" \
		" tensor_role valid_range cause_class n_seen op alternatives argument"
	columns["error-texts.tsv"] = "pattern type kind cause op argument confidence follow_on words fix"
	array["causes.tsv"] = "cause_rows"
	array["kernels.tsv"] = "kernel_rows"
	array["conditions.tsv"] = "condition_rows"
	array["assert-sites.tsv"] = "site_rows"
	array["error-texts.tsv"] = "text_rows"
	row["causes.tsv"] = "cause"
	row["kernels.tsv"] = "kernel_row"
	row["conditions.tsv"] = "condition_row"
	row["assert-sites.tsv"] = "site_row"
	row["error-texts.tsv"] = "text_row"
	set(steps, "crash_capture cpu_rerun label_check dataloader_scan shape_check device_check blocking_launch")
	set(kinds, "device_assert illegal_address misaligned_address launch_failure out_of_memory" \
		" no_kernel_image library_error device_mismatch python_error signal none")
	set(confidences, "likely possible")
	set(yes_no, "yes no")
	print "/* Made by gen-catalog.awk from the tables in data/. */"
	print "#include \"diagnose/catalog_rows.h\"\n"
	print "#define N_(text) text /* marks a text for translation */"
}

function set(of, words,    w, n, i) {
	n = split(words, w, " ")
	for (i = 1; i <= n; i++)
		of[w[i]] = 1
}

function fail(what) {
	print FILENAME ":" FNR ": " what > "/dev/stderr"
	failed = 1
	exit 1
}

function quoted(text) {
	gsub(/\\/, "&&", text)
	gsub(/"/, "\\\\&", text)
	return "\"" text "\""
}

function cell(text) {
	return text == "" ? "NULL" : quoted(text)
}

function told(text) { # shown to the reader
	return text == "" ? "NULL" : "N_(" quoted(text) ")"
}

function known(of, word, what) {
	if (!(word in of))
		fail("unknown " what " \"" word "\"")
	return cell(word)
}

function end_table() {
	if (table != "")
		print "};\nconst size_t " array[table] "_count = sizeof(" array[table] ") / sizeof(" array[table] "[0]);"
}

FNR == 1 {
	end_table()
	table = FILENAME
	sub(/.*\//, "", table)
	if (!(table in columns))
		fail("no such table is known")
	header = columns[table]
	gsub(/ /, FS, header)
	if ($0 != header)
		fail("the columns must be: " columns[table])
	width = split(columns[table], unused, " ")
	print "\nconst struct " row[table] " " array[table] "[] = {"
	next
}

NF != width { fail("a row must have " width " cells, this one has " NF) }

table == "causes.tsv" {
	if ($1 in causes)
		fail("cause \"" $1 "\" is there twice")
	causes[$1] = 1
	n = split($6, step, " ")
	for (i = 1; i <= n; i++)
		known(steps, step[i], "step")
	printf "\t{%s, %s, %s,\n\t %s,\n\t %s, %s},\n", cell($1), told($2), told($3), told($4), told($5), cell($6)
}

table == "kernels.tsv" { printf "\t{%s, %s, %s},\n", cell($1), cell($2), told($3) }

table == "conditions.tsv" {
	printf "\t{%s, %s, %s, %s, %s, %s, %s},\n", cell($1), known(causes, $2, "cause"), cell($3), cell($4),
		cell($5), cell($6), told($7)
}

# How the cell of a condition is compared: a placeholder for any text is written <...>, one within a text {...}.
function compared(condition) {
	if (condition == "<empty>")
		return "SITE_EMPTY"
	if (condition ~ /^<(user|CCCL) [^>]*>$/)
		return "SITE_ANY"
	return condition ~ /[{]|<text/ ? "SITE_PATTERN" : "SITE_EXACT"
}

table == "assert-sites.tsv" {
	how = compared($5)
	condition = $5
	if (how == "SITE_PATTERN")
		gsub(/[{][^}]*[}]|<text[^>]*>/, "*", condition)
	if ($12 !~ /^[0-9]+$/)
		fail("n_seen must be a number")
	n = split($13 " " $14, name, " ")
	ops = ""
	for (i = 1; i <= n; i++)
		ops = ops quoted(name[i]) ", "
	printf "\t{%s, %s, %s, %s, %s,\n\t %s, %s,\n\t (const char *const[]){%sNULL}, %s, %d},\n", cell($2),
		cell($3), cell($4), how, cell(condition), told($10), known(causes, $11, "cause"), ops, cell($15), $12
}

table == "error-texts.tsv" {
	printf "\t{%s, %s, %s, %s, %s, %s, %s, %s,\n\t %s, %s},\n", cell($1), cell($2), known(kinds, $3, "kind"),
		known(causes, $4, "cause"), cell($5), cell($6), known(confidences, $7, "confidence"),
		known(yes_no, $8, "follow_on") == "\"yes\"" ? "true" : "false", told($9), told($10)
}

END {
	if (failed)
		exit 1
	end_table()
}
