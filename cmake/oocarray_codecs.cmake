# The libraries that unpack chunks of files, each optional: what their headers and libraries are called.  The project includes
# this, and so does a project that links with its static library.
set(oocarray_codecs zstd blosc lzf lz4 bzip2 szip)
set(oocarray_codec_zstd zstd.h zstd)
set(oocarray_codec_blosc blosc.h blosc)
set(oocarray_codec_lzf lzf.h lzf)
set(oocarray_codec_lz4 lz4.h lz4)
set(oocarray_codec_bzip2 bzlib.h bz2)
set(oocarray_codec_szip szlib.h sz)  # of libaec

# Looks for a codec, and makes the target oocarray_codec::NAME of it where it is there.
function(oocarray_find_codec codec)
  if(NOT codec IN_LIST oocarray_codecs)
    message(FATAL_ERROR "OOCARRAY_CODECS names '${codec}': there are ${oocarray_codecs}")
  endif()
  list(GET oocarray_codec_${codec} 0 header)
  list(GET oocarray_codec_${codec} 1 library)
  find_path(oocarray_codec_${codec}_headers ${header} PATH_SUFFIXES lib${library})
  find_library(oocarray_codec_${codec}_library ${library})
  mark_as_advanced(oocarray_codec_${codec}_headers oocarray_codec_${codec}_library)
  if(oocarray_codec_${codec}_headers AND oocarray_codec_${codec}_library AND NOT TARGET oocarray_codec::${codec})
    add_library(oocarray_codec::${codec} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(oocarray_codec::${codec} PROPERTIES
      IMPORTED_LOCATION "${oocarray_codec_${codec}_library}"
      INTERFACE_INCLUDE_DIRECTORIES "${oocarray_codec_${codec}_headers}")
  endif()
endfunction()

# The same, for one that must be there.
function(oocarray_require_codec codec)
  oocarray_find_codec(${codec})
  if(NOT TARGET oocarray_codec::${codec})
    message(FATAL_ERROR "oocarray unpacks chunks by ${codec}, whose header and library (${oocarray_codec_${codec}}) are not "
      "found: install their package, or configure with an OOCARRAY_CODECS that does not name it")
  endif()
endfunction()
