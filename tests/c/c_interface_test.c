/* Tests of oocarray.h: each function once as it should be used, and once as it should not. */
#include "oocarray/oocarray.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int faults = 0;

static void check(int ok, const char* what, int line) {
  if (ok) return;
  fprintf(stderr, "c_interface_test.c:%d: %s; the last text is: %s\n", line, what, ooc_error_text());
  ++faults;
}
#define CHECK(x) check(x, #x, __LINE__)
#define DONE(x) check((x) == 0, #x, __LINE__)
#define SAYS(words) check(strstr(ooc_error_text(), words) != NULL, "the text says '" words "'", __LINE__)

enum { rows = 1500, columns = 400 };

static void elements_are_plain_memory(ooc_runtime* rt, ooc_store* s) {
  const size_t extents[2] = {rows, columns};
  ooc_array* a = NULL;
  DONE(ooc_array_create(rt, s, "a", "f8", 2, extents, NULL, &a));
  double(*u)[columns] = ooc_array_data(a);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) u[i][j] = (double)(i * columns + j);
  DONE(ooc_array_writeback(a, 1));
  DONE(ooc_array_invalidate(a, 0));
  CHECK(u[1499][399] == rows * columns - 1);
  u[0][0] = -1;
  CHECK(ooc_array_invalidate(a, 0) == OOC_DIRTY);
  SAYS("'a'");
  DONE(ooc_array_invalidate(a, 1));
  CHECK(u[0][0] == 0);
  DONE(ooc_array_close(a));

  DONE(ooc_array_open(rt, s, "a", OOC_READ_ONLY, NULL, &a));
  size_t found[2] = {0, 0};
  CHECK(ooc_array_rank(a) == 2);
  ooc_array_extents(a, found);
  CHECK(found[0] == rows && found[1] == columns);
  CHECK(strcmp(ooc_array_type(a), "f8") == 0 && ooc_array_element_size(a) == 8);
  const double(*v)[columns] = (const double(*)[columns])ooc_array_data(a);
  double sum = 0;
  DONE(ooc_array_advise(a, OOC_SEQUENTIAL));
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) sum += v[i][j];
  CHECK(sum == 0.5 * rows * columns * (rows * columns - 1));
  CHECK(ooc_array_advise(a, 7) == OOC_INVALID_REQUEST);
  DONE(ooc_array_close(a));
}

static void boxes_pins_and_lists_of_numbers(ooc_runtime* rt, ooc_store* s) {
  ooc_array* a = NULL;
  DONE(ooc_array_open(rt, s, "a", OOC_READ_WRITE, NULL, &a));
  const size_t lower[2] = {10, 0}, upper[2] = {12, columns}, beyond[2] = {rows + 1, columns};
  DONE(ooc_array_prefetch(a, lower, upper));
  CHECK(ooc_array_prefetch(a, lower, beyond) != 0);
  DONE(ooc_array_overwrite(a, lower, upper));
  double* u = ooc_array_data(a);
  for (size_t i = 10 * columns; i < 12 * columns; ++i) u[i] = 5;
  ooc_pin* pin = NULL;
  DONE(ooc_array_pin(a, lower, upper, 1, &pin));
  FILE* f = fopen("out.raw", "wb");
  CHECK(f != NULL && fwrite(u + 10 * columns, sizeof(double), 2 * columns, f) == 2 * columns);
  if (f) fclose(f);
  ooc_pin_release(pin);
  ooc_pin_release(NULL);
  CHECK(ooc_array_pin(a, NULL, upper, 0, &pin) == OOC_INVALID_REQUEST);
  SAYS("lower is NULL");

  const size_t numbers[3] = {rows * columns - 1, 0, 10 * columns};
  double values[3] = {0, 0, 0};
  DONE(ooc_array_gather(a, 3, numbers, values));
  CHECK(values[0] == rows * columns - 1 && values[1] == 0 && values[2] == 5);
  values[1] = 7;
  DONE(ooc_array_scatter(a, 3, numbers, values));
  CHECK(u[0] == 7);
  const size_t outside = rows * columns;
  CHECK(ooc_array_gather(a, 1, &outside, values) == EDOM);
  SAYS("600000");
  DONE(ooc_array_gather(a, 0, NULL, NULL));
  DONE(ooc_array_close(a));
}

static void an_array_with_a_pin_stays_open(ooc_runtime* rt, ooc_store* s) {
  ooc_array* a = NULL;
  DONE(ooc_array_open(rt, s, "a", OOC_READ_WRITE, NULL, &a));
  const size_t lower[2] = {0, 0}, upper[2] = {1, columns};
  ooc_pin* pin = NULL;
  DONE(ooc_array_pin(a, lower, upper, 1, &pin));
  double* u = ooc_array_data(a);
  u[1] = 11;
  CHECK(ooc_array_close(a) == OOC_BUSY);
  SAYS("release them");
  CHECK(ooc_array_data(a) == u);
  u[1] = 12;
  ooc_pin_release(pin);
  DONE(ooc_array_close(a));
  DONE(ooc_array_open(rt, s, "a", OOC_READ_ONLY, NULL, &a));
  CHECK(((const double*)ooc_array_data(a))[1] == 12);
  DONE(ooc_array_close(a));
}

static void options_and_attributes(ooc_runtime* rt, ooc_store* s) {
  const size_t extents[2] = {4, 6}, most[2] = {8, 12}, tile[2] = {2, 2}, larger[2] = {8, 6}, too_large[2] = {9, 6};
  const int32_t fill = 42;
  ooc_array_options o = {0};
  o.tile = tile;
  o.max_extents = most;
  o.fill = &fill;
  o.sparse = 1;
  ooc_array* a = NULL;
  DONE(ooc_array_create(rt, s, "tiled", "i4", 2, extents, &o, &a));
  CHECK(((int32_t*)ooc_array_data(a))[23] == 42);
  DONE(ooc_array_resize(a, larger));
  CHECK(((int32_t*)ooc_array_data(a))[47] == 42);
  CHECK(ooc_array_resize(a, too_large) != 0);
  SAYS("'tiled'");
  char value[8];
  size_t needed = 0;
  DONE(ooc_array_set_attribute(a, "units", "metres"));
  DONE(ooc_array_attribute(a, "units", value, sizeof value, &needed));
  CHECK(needed == 7 && strcmp(value, "metres") == 0);
  CHECK(ooc_array_attribute(a, "units", value, 6, &needed) == ERANGE && needed == 7);
  CHECK(ooc_array_attribute(a, "none", value, sizeof value, &needed) == ENOENT);
  CHECK(ooc_array_last_commit(a) == -1);
  CHECK(ooc_commit(1, &a, 0, NULL, NULL) == OOC_INVALID_REQUEST);
  SAYS("commits");
  DONE(ooc_array_close(a));
  ooc_array* again = NULL;
  CHECK(ooc_array_create(rt, s, "tiled", "i4", 2, extents, NULL, &again) == EEXIST && again == NULL);
  o.replace = 1;
  DONE(ooc_array_create(rt, s, "tiled", "i4", 2, extents, &o, &again));
  DONE(ooc_array_close(again));
  DONE(ooc_store_remove(s, "tiled"));
  CHECK(ooc_store_remove(s, "tiled") == ENOENT);
  SAYS("'tiled'");
}

static void commits(ooc_runtime* rt, ooc_store* s) {
  const size_t n = 1000;
  ooc_array_options o = {0};
  o.commits = 1;
  ooc_array* both[2] = {NULL, NULL};
  DONE(ooc_array_create(rt, s, "x", "f4", 1, &n, &o, &both[0]));
  DONE(ooc_array_create(rt, s, "v", "f4", 1, &n, &o, &both[1]));
  float* x = ooc_array_data(both[0]);
  x[999] = 1;
  const char* const key = "step";
  const char* const step = "12";
  DONE(ooc_commit(2, both, 1, &key, &step));
  CHECK(ooc_array_last_commit(both[0]) == 1 && ooc_array_last_commit(both[1]) == 1);
  x[999] = 2;
  DONE(ooc_array_roll_back(both[0]));
  x = ooc_array_data(both[0]);
  CHECK(x[999] == 1);
  char value[3];
  DONE(ooc_array_commit_attribute(both[1], "step", value, sizeof value, NULL));
  CHECK(strcmp(value, "12") == 0);
  for (int i = 0; i < 2; ++i) DONE(ooc_array_close(both[i]));
}

static void wrong_arguments_are_refused_by_name(ooc_runtime* rt, ooc_store* s) {
  ooc_array* a = NULL;
  ooc_store* none = NULL;
  ooc_runtime* small = NULL;
  const size_t n = 10, nothing[2] = {10, 0};
  CHECK(ooc_array_create(rt, s, "b", "real", 1, &n, NULL, &a) == OOC_TYPE_MISMATCH);
  SAYS("'real'");
  CHECK(ooc_array_create(rt, s, "b", "f8", 2, nothing, NULL, &a) != 0);
  ooc_array_options tiled = {0};
  tiled.tile = &n;
  CHECK(ooc_array_create(rt, s, "b", "f8", SIZE_MAX, &n, &tiled, &a) == OOC_INVALID_REQUEST);
  SAYS("1 to 8 extents");
  CHECK(ooc_array_create(rt, s, "b", "f8", 0, &n, NULL, &a) == OOC_INVALID_REQUEST);
  CHECK(ooc_array_create(NULL, s, "b", "f8", 1, &n, NULL, &a) == OOC_INVALID_REQUEST);
  SAYS("rt is NULL");
  CHECK(ooc_array_create(rt, s, "b", "f8", 1, &n, NULL, NULL) == OOC_INVALID_REQUEST);
  SAYS("a is NULL");
  CHECK(ooc_array_open(rt, s, "a", 2, NULL, &a) == OOC_INVALID_REQUEST);
  SAYS("mode 2");
  CHECK(ooc_array_open(rt, s, "b", OOC_READ_WRITE, NULL, &a) == ENOENT);
  SAYS("'b'");
  CHECK(ooc_store_open("nowhere:x", &none) != 0 && none == NULL);
  SAYS("nowhere:x");
  CHECK(ooc_runtime_create(1, &small) == OOC_BUDGET_TOO_SMALL && small == NULL);
  CHECK(ooc_array_data(NULL) == NULL);
  DONE(ooc_array_close(NULL));
  ooc_runtime_destroy(NULL);
  ooc_store_close(NULL);
}

int main(void) {
  ooc_runtime* rt = NULL;
  ooc_store* s = NULL;
  CHECK(strcmp(ooc_error_text(), "") == 0);
  DONE(ooc_runtime_create(4 << 20, &rt));
  DONE(ooc_store_open("local:store", &s));
  if (faults) return 1;
  elements_are_plain_memory(rt, s);
  boxes_pins_and_lists_of_numbers(rt, s);
  an_array_with_a_pin_stays_open(rt, s);
  options_and_attributes(rt, s);
  commits(rt, s);
  wrong_arguments_are_refused_by_name(rt, s);
  ooc_store_close(s);
  ooc_runtime_destroy(rt);
  return faults != 0;
}
