# Writes OUT: the text of IN as `const char SYMBOL[]`.
file(READ ${IN} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUT} "/* Made from ${SYMBOL}'s source file. */
extern const char ${SYMBOL}[];
const char ${SYMBOL}[] =
    \"${text}\";
")
