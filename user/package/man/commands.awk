# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Turns the output of `xdp-cuckoo help COMMAND` into a subsection of the man page: usage, summary, what words and options
# mean, and what the exit status means. The rest of the text, and the examples, are in help alone; a list of words behind a
# text that names xdp-cuckoo-rules(5) is there. A block of indented
# lines is a list if most lines are a tag, two or more spaces and a text, or continue such a text. Otherwise the block is
# an example, unless its lines begin with dashes.

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
	if (text == "")
		return
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
function end_block(    i, tagged, indent, at, text, item, gap, column, tag_indent) {
	for (i = 1; i <= lines; i++)
		tagged += is_tagged(line[i])
	if (is_elsewhere) {
		print ".PP\nSee xdp\\-cuckoo\\-rules(5)."
		is_elsewhere = lines = 0
	}
	if (is_help) # the page has these options already
		lines = 0
	if (lines && tagged < lines / 2 && line[1] ~ /^ +- /) {
		print ".PP\n.EX"
		for (i = 1; i <= lines; i++)
			put(line[i])
		print ".EE"
	}
	for (i = 1; lines && tagged >= lines / 2 && i <= lines; i++) {
		match(line[i], /^ +/)
		indent = RLENGTH
		text = substr(line[i], indent + 1)
		at = match(text, /  +/)
		# One space is enough behind a tag that reaches to the column of the texts above.
		if (!at && column > indent && substr(text, column - indent, 1) == " ")
			at = match(substr(text, 1, column - indent), / $/)
		gap = RLENGTH
		if (i > 1 && indent > tag_indent) {
			if (indent > column) {
				put(item)
				print ".br"
				item = text
			} else
				item = item " " text
			continue
		}
		if (i > 1)
			put(item)
		tag_indent = indent
		if (!at) { # a tag without text
			print ".TP"
			put("`" text "`")
			column = indent + 2
			item = ""
			continue
		}
		item = substr(text, at + gap)
		column = indent + at + gap - 1
		print ".TP"
		put("`" substr(text, 1, at - 1) "`")
	}
	if (lines && tagged >= lines / 2)
		put(item)
	lines = 0
}

# end_text: prints the sentences of the collected text that tell the exit status.
function end_text(    end) {
	if (text != "")
		is_elsewhere = text ~ /xdp-cuckoo-rules\(5\)/
	while (match(text, /Status [0-9]/)) {
		text = substr(text, RSTART)
		end = index(text, ". ")
		print ".PP"
		put(end ? substr(text, 1, end) : text)
		text = substr(text, end ? end + 2 : length(text) + 1)
	}
	text = ""
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
	is_help = word[2] == "help"
	print ".nh\n.ad l"
	gsub(/\|/, "|\001", usage)
	put("`" usage "`")
	print ".ad\n.hy\n.PP"
	put(toupper(substr($0, 1, 1)) substr($0, 2) ".")
	next
}
/^ / {
	end_text()
	line[++lines] = $0
	next
}
{
	end_block()
	if ($0 == "")
		end_text()
	else
		text = text == "" ? $0 : text " " $0
}
END {
	end_block()
	end_text()
}
