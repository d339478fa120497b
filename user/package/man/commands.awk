# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Turns the output of `xdp-cuckoo help COMMAND` into a subsection of the man page. A block of indented lines is a list if
# most lines are a tag, two or more spaces and a text, or continue such a text. Otherwise the block is an example.

function literal(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/'/, "\\(aq", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	gsub(/\001/, "\\:", text) # a line may break here
	return text
}

function put(text) {
	text = literal(text)
	while (match(text, /`[^`]*`/))
		text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fP" \
			substr(text, RSTART + RLENGTH)
	print text ~ /^[.]/ ? "\\&" text : text
}

function is_tagged(line) {
	return line ~ /^  +[^ ].*[^ ]  +[^ ]/ || line ~ /^            +[^ ]/
}

# end_block: prints the block of indented lines that was collected.
function end_block(    i, tagged, indent, at, text, rest, column, tag_indent) {
	for (i = 1; i <= lines; i++)
		tagged += is_tagged(line[i])
	if (lines && tagged < lines / 2) {
		print ".PP\n.EX"
		for (i = 1; i <= lines; i++)
			put(line[i])
		print ".EE"
		is_open = 0
	}
	for (i = 1; lines && tagged >= lines / 2 && i <= lines; i++) {
		match(line[i], /^ +/)
		indent = RLENGTH
		text = substr(line[i], indent + 1)
		at = match(text, /  +/)
		# One space is enough behind a tag that reaches to the column of the texts above.
		if (!at && column > indent && substr(text, column - indent, 1) == " ")
			at = match(substr(text, 1, column - indent), / $/)
		if (i > 1 && indent > tag_indent) {
			if (indent > column)
				print ".br"
			put(text)
			continue
		}
		tag_indent = indent
		if (!at) { # a tag without text
			print ".TP"
			put("`" text "`")
			column = indent + 2
			continue
		}
		rest = substr(text, at + RLENGTH)
		column = indent + at + RLENGTH - 1
		print ".TP"
		put("`" substr(text, 1, at - 1) "`")
		put(rest)
	}
	if (lines)
		is_open = 0
	lines = 0
}

NR == 1 {
	sub(/^usage: /, "")
	usage = $0
	next
}
!has_summary && /^ / {
	sub(/^ +/, "")
	usage = usage " " $0
	next
}
!has_summary {
	has_summary = 1
	split(usage, word, " ")
	print ".SS " word[2]
	print ".nh\n.ad l"
	gsub(/\|/, "|\001", usage)
	put("`" usage "`")
	print ".ad\n.hy\n.PP"
	put(toupper(substr($0, 1, 1)) substr($0, 2) ".")
	next
}
/^ / {
	line[++lines] = $0
	next
}
{
	end_block()
	if ($0 == "") {
		is_open = 0
		next
	}
	if (!is_open)
		print ".PP"
	is_open = 1
	put($0)
}
END { end_block() }
