# Modules one after the other, in the order of embed_page.cmake, as one module: an inline one can import nothing.
/^import /{
  :more
  /;$/!{
    N
    b more
  }
  d
}
s/^export //
