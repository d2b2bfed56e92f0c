// Matrix products and gathers.
#include "check.h"

namespace test {

// With cancel the second half of every sum takes away nearly all of the first, so that what
// is left shows in which order it was added.
static void product(int t, int wt, int rows, int k, int n, bool bias, bool residual, size_t offset, bool cancel = false) {
  const std::string what = text("linear, types %d and %d, %d rows, k %d, n %d, bias %d, residual %d, offset %zu", t, wt, rows, k, n, bias, residual, offset);
  const int n2 = n + 3, stride = n2 + 2;
  Numbers x = Numbers::normal(t, size_t(rows) * k, 1, offset);
  Numbers w[2] = {Numbers::normal(wt, size_t(n) * k, 1, offset), Numbers::normal(wt, size_t(n2) * k, 1)};
  if (cancel) {
    for (int i = 0; i < k / 2; i++) {
      for (int row = 0; row < rows; row++) x.set(size_t(row) * k + k / 2 + i, -x[size_t(row) * k + i]);
      for (int c = 0; c < n; c++) w[0].set(size_t(c) * k + k / 2 + i, w[0][size_t(c) * k + i]);
      for (int c = 0; c < n2; c++) w[1].set(size_t(c) * k + k / 2 + i, w[1][size_t(c) * k + i]);
    }
  }
  Numbers b = Numbers::normal(SKALD_F32, size_t(n), 2), r = Numbers::normal(t, size_t(rows) * stride, 3);
  Numbers y[2] = {Numbers(t, size_t(rows) * n), r.copy()};
  // The second product is strided, and its residual, if it has one, is y itself.
  const skald_product group[2] = {
      {y[0].data(), n, w[0].weight(), bias ? b.floats() : nullptr, residual ? r.data() : nullptr, n, 0},
      {y[1].data(), stride, w[1].weight(), nullptr, residual ? y[1].data() : nullptr, n2, 0},
  };
  const auto f = [&] { return skald_linear(t, x.data(), rows, k, group, 2, nullptr); };
  const std::vector<unsigned char> second = y[1].bytes();
  const auto value = [&](int which, int row, int column, double extra, double before) {
    double sum = extra, size = std::fabs(extra);
    for (int i = 0; i < k; i++) {
      const double p = x[size_t(row) * k + i] * w[which][size_t(column) * k + i];
      sum += p;
      size += std::fabs(p);
    }
    if (residual) size += std::fabs(before), sum = before + (t == SKALD_BF16 ? rounded(sum, t) : sum);
    return Want{sum, size};
  };
  // A wrong step of bfloat16 where the sum lies between two, before the residual is added.
  const double slack = 2 + 0.75 * std::sqrt(double(k)) + (t == SKALD_BF16 && residual ? 0x1p16 : 0);
  compare(what, y[0], [&] {
    std::memcpy(y[1].data(), second.data(), second.size());
    return f();
  }, [&](size_t i) { return value(0, int(i) / n, int(i) % n, bias ? b[i % n] : 0, residual ? r[i] : 0); }, slack);
  for (int row = 0; row < rows; row++) {
    for (int c = n2; c < stride; c++) check(y[1][size_t(row) * stride + c] == r[size_t(row) * stride + c], "%s: wrote between rows", what.c_str());
  }

  // Rows alone: the bits must be the same.
  for (int row : {0, rows / 2, rows - 1}) {
    Numbers one(t, size_t(n2));
    const skald_product alone{one.data(), n2, w[1].weight(), nullptr, residual ? static_cast<const char *>(r.data()) + size_t(row) * stride * r.size() : nullptr, n2, 0};
    run(what, [&] { return skald_linear(t, static_cast<const char *>(x.data()) + size_t(row) * k * x.size(), 1, k, &alone, 1, nullptr); });
    check(!std::memcmp(one.data(), static_cast<const char *>(y[1].data()) + size_t(row) * stride * one.size(), size_t(n2) * one.size()), "%s: row %d alone has other bits", what.c_str(), row);
  }
}

void products() {
  for (auto [t, w] : {std::pair{SKALD_F32, SKALD_F32}, {SKALD_F32, SKALD_BF16}, {SKALD_F32, SKALD_F16}, {SKALD_BF16, SKALD_BF16}, {SKALD_BF16, SKALD_F16}}) {
    product(t, w, 1, 1, 1, false, false, 0);
    product(t, w, 3, 17, 5, true, false, 1);
    product(t, w, 8, 600, 33, true, true, 0);
    product(t, w, 12, 96, 40, false, true, 0);
    product(t, w, 27, 65, 20, true, false, 0);
    product(t, w, 64, 264, 9, false, false, 0);
    product(t, w, 66, 40, 130, true, true, 0);
    product(t, w, 131, 77, 67, true, false, 3);
    product(t, w, 12, 600, 20, false, false, 0, true);
    product(t, w, 66, 600, 70, false, false, 0, true);
  }
}

void gathers() {
  for (int t : kTypes) {
    for (int width : {1, 13, 1064}) {
      for (int parts : {1, 2, 5}) {
        const int rows = 6, stride = parts + 1, table_rows = 9;
        const int stored[] = {SKALD_F32, SKALD_BF16, SKALD_F16};
        std::vector<Numbers> tables;
        std::vector<skald_part> part;
        for (int j = 0; j < parts; j++) tables.push_back(Numbers::normal(stored[j % 3], size_t(table_rows) * width, 1));
        for (int j = 0; j < parts; j++) part.push_back({tables[j].weight(), table_rows, j % 2});
        std::vector<int32_t> ids(rows * stride, 1 << 30);
        for (int i = 0; i < rows; i++) {
          for (int j = 0; j < parts; j++) ids[i * stride + j] = (i * 7 + j * 3) % (table_rows - 1);
        }
        std::vector<int32_t> fault(4);
        Numbers y(t, size_t(rows) * width);
        const float scale = 0.35355339f;
        const auto f = [&] { return skald_embed_sum(t, y.data(), rows, width, ids.data(), stride, part.data(), parts, scale, fault.data(), nullptr); };
        compare(text("embed_sum, type %d, width %d, %d parts", t, width, parts), y, f, [&](size_t i) {
          const auto term = [&](int j) { return tables[j][size_t(ids[i / width * stride + j] + j % 2) * width + i % width]; };
          if (parts == 1) return Want{rounded(term(0), t), 0};
          float inner = float(term(1));
          for (int j = 2; j < parts; j++) inner += float(term(j));
          return Want{rounded(rounded(term(0) + rounded(inner, t), t) * double(scale), t), 0};
        }, 0);
        check(fault[0] == 0, "embed_sum reports a fault that there is not");

        y.poison();
        ids[2 * stride + parts - 1] = table_rows;
        run("embed_sum", f);
        check(fault[0] == SKALD_FAULT_ID && fault[1] == 2 && fault[2] == parts - 1 && fault[3] == table_rows, "embed_sum does not tell which id is bad");
        check(std::isnan(y[size_t(2) * width]) && !std::isnan(y[size_t(3) * width]), "embed_sum writes the row at fault, or leaves out others");
      }
    }
  }
}

}  // namespace test
