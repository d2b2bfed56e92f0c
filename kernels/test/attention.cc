// The KV cache and both forms of attention.
#include <array>

#include "check.h"

namespace test {

// A head turned to a position, with the roundings of type t.
static void turn(std::vector<double> &head, const Numbers &cos, const Numbers &sin, int dim, int position, int t) {
  const int half = dim / 2;
  for (int i = 0; i < half; i++) {
    const double c = cos[size_t(position) * half + i], s = sin[size_t(position) * half + i], a = head[i], b = head[i + half];
    head[i] = rounded(rounded(a * c, t) + rounded(-b * s, t), t);
    head[i + half] = rounded(rounded(b * c, t) + rounded(a * s, t), t);
  }
}

// softmax(q k scale) v over keys and values that are given by functions of the key and the
// number: all numbers of a query's head. The last one is kept, for numbers come in order.
class Attended {
 public:
  template <class Q, class K, class V> Want operator()(size_t query, int keys, int d, Q q, K k, V v, double scale, int number) {
    if (query == query_) return wants_[number];
    query_ = query;
    std::vector<double> score(keys);
    double top = -INFINITY, largest = 0, total = 0;
    for (int j = 0; j < keys; j++) {
      double size = 0;
      for (int i = 0; i < d; i++) {
        const double p = q(i) * k(j, i);
        score[j] += p;
        size += std::fabs(p);
      }
      score[j] *= scale;
      top = std::max(top, score[j]);
      largest = std::max(largest, size * scale);
    }
    for (double &s : score) total += s = std::exp(s - top);
    wants_.assign(d, {0, 0});
    for (int j = 0; j < keys; j++) {
      for (int i = 0; i < d; i++) {
        const double p = score[j] / total * v(j, i);
        wants_[i].value += p;
        wants_[i].size += std::fabs(p);
      }
    }
    for (Want &w : wants_) w.size *= largest * (2 + std::sqrt(double(d))) + 6 + std::sqrt(double(keys));
    return wants_[number];
  }

 private:
  size_t query_ = ~size_t(0);
  std::vector<Want> wants_;
};

struct Shape {
  int heads, group, head_dim, block_size, rope;
  bool norm;
};

static void cache(int t, int ct, const Shape &s, std::vector<int> lengths) {
  const std::string what = text("cache of type %d, type %d, %d heads of %d, %d queries each, blocks of %d", ct, t, s.heads, s.head_dim, s.group, s.block_size);
  const int d = s.head_dim, q_heads = s.heads * s.group, sequences = int(lengths.size()), layers = 2;
  int most = 1, n = 0;
  for (int l : lengths) most = std::max(most, (l + s.block_size - 1) / s.block_size), n += l;
  const int blocks = sequences * most + 1;
  Numbers data(ct, size_t(layers) * blocks * 2 * s.heads * s.block_size * d);
  const skald_cache c{data.data(), ct, layers, s.heads, d, s.block_size, blocks};
  std::vector<int32_t> table(size_t(sequences) * most), pos, seq;
  for (size_t i = 0; i < table.size(); i++) table[i] = int32_t(blocks - 1 - i);
  for (int q = 0; q < sequences; q++) {
    for (int p = 0; p < lengths[q]; p++) pos.push_back(p), seq.push_back(q);
  }
  const skald_rows at{pos.data(), seq.data(), table.data(), n, sequences, most, 0};
  Numbers cos(t, size_t(400) * std::max(1, s.rope / 2)), sin(t, cos.count());
  for (size_t i = 0; i < cos.count(); i++) cos.set(i, std::cos(double(i))), sin.set(i, std::sin(double(i)));
  const skald_rope_table rope{cos.data(), sin.data(), s.rope, 400};
  const Numbers queries = Numbers::normal(t, size_t(n) * q_heads * d, 1), k = Numbers::normal(t, size_t(n) * s.heads * d, 1), v = Numbers::normal(t, size_t(n) * s.heads * d, 1);
  Numbers norm = Numbers::normal(SKALD_F32, size_t(d), 1);
  Numbers q = queries.copy();
  std::vector<int32_t> fault(4);

  const auto expected = [&](const Numbers &x, size_t head, int position) {
    std::vector<double> h(d);
    double squares = 0;
    for (int i = 0; i < d; i++) h[i] = x[head * d + i], squares += h[i] * h[i];
    if (s.norm) {
      for (int i = 0; i < d; i++) h[i] = rounded(rounded(h[i] / std::sqrt(squares / d + 1e-5), t) * norm[i], t);
    }
    turn(h, cos, sin, s.rope, position, t);
    return h;
  };
  compare(what + ", append_kv", q, [&] {
    return skald_append_kv(t, &c, 1, q.data(), k.data(), v.data(), q_heads, s.norm ? norm.floats() : nullptr, s.norm ? norm.floats() : nullptr, 1e-5f, &rope, &at, fault.data(), nullptr);
  }, [&](size_t i) {
    const double e = expected(queries, i / d, pos[i / d / q_heads])[i % d];
    return Want{e, 4 * (t == SKALD_BF16 ? 0x1p15 : 8)};
  }, 2);

  // Keys and values as the cache holds them; queries that are exact.
  const auto in_cache = [&](int sequence, int position, int head, int value) {
    const int block = table[size_t(sequence) * most + position / s.block_size];
    return ((((size_t(1) * blocks + block) * 2 + value) * s.heads + head) * s.block_size + position % s.block_size) * d;
  };
  bool kept = true;
  for (int row = 0; row < n; row++) {
    for (int h = 0; h < s.heads; h++) {
      const std::vector<double> key = expected(k, size_t(row) * s.heads + h, pos[row]);
      for (int i = 0; i < d; i++) {
        kept = kept && data[in_cache(seq[row], pos[row], h, 1) + i] == rounded(v[(size_t(row) * s.heads + h) * d + i], ct);
        const double got = data[in_cache(seq[row], pos[row], h, 0) + i];
        kept = kept && std::fabs(got - key[i]) <= std::fabs(key[i]) * 0x1p-7 + (s.norm ? 0x1p-7 : 1e-6);
      }
    }
  }
  check(kept, "%s: the cache does not hold the keys and values", what.c_str());

  const double scale = 1 / std::sqrt(double(d));
  Numbers o(t, queries.count());
  std::vector<float> workspace(skald_attention_workspace(&c, q_heads, n, most) / 4);
  const auto attend = [&](Numbers &out, void *space) {
    return skald_cached_attention(t, out.data(), queries.data(), &c, 1, q_heads, float(scale), &at, space, fault.data(), nullptr);
  };
  Attended attended;
  compare(what + ", cached_attention", o, [&] { return attend(o, workspace.data()); }, [&](size_t i) {
    const int row = int(i / d / q_heads), head = int(i / d) % q_heads / s.group;
    return attended(i / d, pos[row] + 1, d, [&](int j) { return queries[i / d * d + j]; }, [&](int key, int j) { return data[in_cache(seq[row], key, head, 0) + j]; },
                    [&](int key, int j) { return data[in_cache(seq[row], key, head, 1) + j]; }, double(float(scale)), int(i % d));
  }, 1);
  Numbers alone(t, queries.count());
  run(what, [&] { return attend(alone, nullptr); });
  check(alone.bytes() == o.bytes(), "%s: ranges one after another have other bits", what.c_str());
  check(fault[0] == 0, "%s: a fault that there is not", what.c_str());

  // Blocks that do not exist, positions beyond all blocks.
  const int32_t was = table[0];
  table[0] = blocks;
  alone.poison();
  run(what, [&] { return attend(alone, workspace.data()); });
  check(fault[0] == SKALD_FAULT_BLOCK && fault[3] == blocks && std::isnan(alone[0]), "%s: a block that does not exist is not noticed", what.c_str());
  table[0] = was;
  fault.assign(4, 0);
  pos[0] = most * s.block_size;
  run(what, [&] { return attend(alone, workspace.data()); });
  check(fault[0] == SKALD_FAULT_POSITION && fault[1] == 0, "%s: a position beyond the blocks is not noticed", what.c_str());

  // Blocks move.
  const size_t block = size_t(2) * s.heads * s.block_size * d;
  run(what, [&] { return skald_copy_block(&c, 0, blocks - 1, nullptr); });
  bool same = true;
  for (size_t i = 0; i < block; i++) same = same && std::isnan(data[i]) && (data[(size_t(blocks)) * block + i] == data[(2 * size_t(blocks) - 1) * block + i] || std::isnan(data[(size_t(blocks)) * block + i]));
  check(same, "%s: copy_block", what.c_str());
}

static void ropes() {
  for (int t : kTypes) {
    for (auto [heads, d, dim] : {std::array{1, 2, 2}, {3, 7, 4}, {2, 64, 32}}) {
      const int batch = 2, length = 5;
      Numbers cos(t, size_t(length) * dim / 2), sin(t, cos.count());
      for (size_t i = 0; i < cos.count(); i++) cos.set(i, std::cos(double(i))), sin.set(i, std::sin(double(i)));
      const skald_rope_table rope{cos.data(), sin.data(), dim, length};
      const Numbers before = Numbers::normal(t, size_t(batch) * length * heads * d, 1);
      Numbers x = before.copy();
      compare("rope", x, [&, heads = heads, d = d] { return skald_rope(t, x.data(), batch, length, heads, d, &rope, nullptr); }, [&, heads = heads, d = d, dim = dim](size_t i) {
        std::vector<double> head(d);
        for (int j = 0; j < d; j++) head[j] = before[i / d * d + j];
        turn(head, cos, sin, dim, int(i / d / heads % length), t);
        return Want{head[i % d], 0};
      }, 0);
    }
  }
}

void caches() {
  ropes();
  for (int t : kTypes) {
    for (int ct : kTypes) {
      cache(t, ct, {1, 1, 2, 1, 2, true}, {3, 1});
      cache(t, ct, {2, 2, 16, 4, 16, true}, {9, 5});
      cache(t, ct, {2, 3, 17, 5, 8, false}, {11, 2});
      cache(t, ct, {1, 4, 128, 32, 128, true}, {33, 40});
      cache(t, ct, {1, 1, 136, 16, 0, true}, {20});
    }
  }
  cache(SKALD_BF16, SKALD_BF16, {1, 2, 8, 16, 0, false}, {300});  // more than a range
  cache(SKALD_F32, SKALD_F32, {1, 1, 4, 64, 0, false}, {260, 3});
}

void full_attention() {
  for (int t : kTypes) {
    for (auto [batch, length, heads, d] : {std::array{1, 1, 1, 1}, {2, 5, 3, 8}, {1, 70, 2, 64}, {2, 65, 1, 40}, {1, 130, 1, 128}, {1, 20, 1, 132}}) {
      for (double deviation : {0.5, 4.0}) {
        const size_t n = size_t(batch) * length * heads * d;
        const Numbers q = Numbers::normal(t, n, deviation), k = Numbers::normal(t, n, deviation), v = Numbers::normal(t, n, 1);
        Numbers o(t, n);
        const float scale = float(1 / std::sqrt(double(d)));
        Attended attended;
        compare(text("full_attention, type %d, %d of %d, %d heads of %d", t, batch, length, heads, d), o,
                [&, batch = batch, length = length, heads = heads, d = d] { return skald_full_attention(t, o.data(), q.data(), k.data(), v.data(), batch, length, heads, d, scale, nullptr); },
                [&, length = length, heads = heads, d = d](size_t i) {
          const size_t entry = i / d / heads / length, head = i / d % heads;
          const auto at = [&](int key, int j) { return ((entry * length + key) * heads + head) * d + j; };
          return attended(i / d, length, d, [&](int j) { return q[i / d * d + j]; }, [&](int key, int j) { return k[at(key, j)]; }, [&](int key, int j) { return v[at(key, j)]; }, scale, int(i % d));
        }, 1);
      }
    }
  }
}

}  // namespace test
