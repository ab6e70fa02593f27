# Writes OUT: the text of IN as `const char SYMBOL[]`, byte by byte, for compilers
# need not take long string literals.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "/* Made from ${SYMBOL}'s source file. */
extern const char ${SYMBOL}[];
const char ${SYMBOL}[] = {
    ${bytes}0};
")
