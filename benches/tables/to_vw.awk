# The table's CSV as Vowpal Wabbit's text: numbers by name, categories as words, with TEXT=1 the text's words too.
# num7 reaches into the hundreds and is brought to the size of the others. No field of this table holds a comma.
BEGIN { FS = "," }
NR == 1 { next }
{
  gsub(/"/, "")
  line = ($1 == "1" ? "1" : "-1") " |n"
  for (i = 2; i <= 13; i++) if ($i != "") line = line " " i ":" (i == 9 ? $i / 100 : $i)
  line = line " |c"
  for (i = 14; i <= 22; i++) line = line " " i "=" $i
  print TEXT ? line " |t " $23 : line
}
