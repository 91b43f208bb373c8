# Writes text files into a header, each as a constant:
#   cmake -DOUTPUT=file -DFILES=kName=path,... -P EmbedText.cmake
string(REPLACE "," ";" FILES "${FILES}")
set(text "// Made from the page's sources by CMake.\n")
foreach(entry ${FILES})
  string(REPLACE "=" ";" entry "${entry}")
  list(GET entry 0 name)
  list(GET entry 1 path)
  file(READ "${path}" content)
  string(APPEND text
    "static const char ${name}[] = R\"kvbuf(${content})kvbuf\";\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
