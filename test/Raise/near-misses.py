# RUN: %python %s
"""Graphs that are attention but for one place: raised as what they are, or left.

A graph of generics, causal and scaled, is edited in one place at a time. Each case
names what `kvbuf-raise-attention` has to make of it: the attributes of a
`kvbuffer.attention`, or a part of the remark that says why it is not raised.
"""

import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parent / "Inputs"))
from causal_graph import GRAPH, MAPS, edit  # noqa: E402

MASK = r"mask = #kvbuffer\.mask<{}>, "
SCALED = "%scaled = arith.mulf %a, %scale : f32\n"
EXP = "%x = math.exp %d : f32"
SELECT = "arith.select %seen, %scaled, %hidden"
NO_MASK = r"+^((?!mask).)*"
FINITE = ("%hidden = arith.constant 0xFF800000", "%hidden = arith.constant -1.0e9")
# Keys at or after a number of the sequence are hidden, too.
LENGTH = [("%v: tensor<2x12x16xbf16>)", "%v: tensor<2x12x16xbf16>, %n: tensor<2xi32>)"),
          ("%masked =", "%i0 = arith.constant 0 : i32\n    %i1 = arith.constant 1 : i32\n    %i11 = arith.constant 11 : i32\n"
           "    %h = linalg.index 0 : index\n    %n0 = tensor.extract %n[%h] : tensor<2xi32>\n    %n1 = arith.addi %n0, %i0 : i32\n"
           "    %j32 = arith.index_cast %j : index to i32\n    %short = arith.cmpi slt, %j32, %n1 : i32\n    %masked ="),
          (SELECT, "arith.select %short, %scaled, %hidden")]
ADDED = [("%masked = arith.select %short, %scaled, %hidden : f32",
          "%bias = arith.select %short, %zero, %hidden : f32\n    %masked = arith.addf %scaled, %bias : f32")]
BOTH = [("arith.select %short, %scaled, %hidden", SELECT),
        ("linalg.yield %masked", "%twice = arith.select %short, %masked, %hidden : f32\n    linalg.yield %twice")]
BIAS = [("%v: tensor<2x12x16xbf16>)", "%v: tensor<2x12x16xbf16>, %n: tensor<2xf32>)"),
        ("%masked =", "%h = linalg.index 0 : index\n    %x = tensor.extract %n[%h] : tensor<2xf32>\n"
         "    %t = arith.addf %scaled, %x : f32\n    %masked ="), (SELECT, "arith.select %seen, %t, %hidden")]


#  name, edits, what is expected: a pattern in the op's attributes after "+", or in
#  the remark
CASES = [
    ("as_it_is", [], "+" + MASK.format("causal = true") + "scale = 2.5"),
    # The scale.
    ("negative_scale", [("%scale = arith.constant 0.25", "%scale = arith.constant -0.25")],
     r"+scale = -2\.5"),
    ("no_scale", [(SELECT, "arith.select %seen, %a, %hidden")], r"+scale = 1\.0"),
    ("divided", [("%scaled = arith.mulf %a, %scale", "%scaled = arith.divf %a, %scale")],
     r"+scale = 4\.0"),
    ("scale_divided_by_scores", [("%scaled = arith.mulf %a, %scale", "%scaled = arith.divf %scale, %a")],
     "computed by 'arith.divf'"),
    ("squared", [("%scaled = arith.mulf %a, %scale", "%scaled = arith.mulf %a, %a")],
     "computed by 'arith.mulf'"),
    ("scale_after_mask", [("linalg.yield %masked", "%again = arith.mulf %masked, %scale : f32\n    linalg.yield %again"),
                          ("0xFF800000 : f32\n  %scale", "-3.0e38 : f32\n  %scale")], r"+scale = 6\.25"),
    ("mask_scaled_away", [("linalg.yield %masked", "%minus = arith.negf %masked : f32\n    linalg.yield %minus")],
     "hidden scores are no numbers"),
    ("scale_in_exponent", [(EXP, "%t = arith.mulf %d, %scale : f32\n    %x = math.exp %t : f32")],
     r"+scale = 6\.25"),
    ("falling_exponent", [(EXP, "%t = arith.negf %d : f32\n    %x = math.exp %t : f32")],
     "the exponential falls"),
    ("exp2", [(EXP, "%x = math.exp2 %d : f32")], r"+scale = 0\.17328"),
    # The mask.
    ("top_left", [("%p = arith.addi %i, %c4", "%p = arith.addi %i, %i0"), ("%c4 = arith.constant 4", "%i0 = arith.constant 0")],
     r"+^((?!mask).)* visible \{$"),
    ("one_more_key", [("%c4 = arith.constant 4", "%c4 = arith.constant 5")], "+" + MASK.format("right = 1")),
    ("strict", [("arith.cmpi sle", "arith.cmpi slt")], r"+^((?!mask).)* visible \{$"),
    ("unsigned", [("arith.cmpi sle", "arith.cmpi ule")], "+" + MASK.format("causal = true")),
    ("other_side", [("arith.cmpi sle", "arith.cmpi sge")], "+" + MASK.format("left = 0")),
    ("inverted", [(SELECT, "arith.select %seen, %hidden, %scaled")], "query 7 sees no key"),
    ("inverted_twice", [(SELECT, "arith.select %seen, %hidden, %scaled"), ("arith.cmpi sle", "arith.cmpi sgt")],
     "+" + MASK.format("causal = true")),
    ("not_of_a_comparison", [("%masked =", "%true = arith.constant true\n    %not = arith.xori %seen, %true : i1\n    %masked ="),
                             (SELECT, "arith.select %not, %hidden, %scaled")], "+" + MASK.format("causal = true")),
    ("diagonal", [("arith.cmpi sle", "arith.cmpi eq")], "+" + MASK.format("causal = true, left = 0")),
    ("all_but_the_diagonal", [("arith.cmpi sle", "arith.cmpi ne")], r"+^((?!mask).)* visible \{$"),
    ("keys_doubled", [("%seen = arith.cmpi sle, %j", "%jj = arith.addi %j, %j : index\n    %seen = arith.cmpi sle, %jj")],
     r"+^((?!mask).)* visible \{$"),
    ("by_head", [("%i = linalg.index 1", "%i = linalg.index 0")], r"+^((?!mask).)* visible \{$"),
    ("hidden_little", [("%hidden = arith.constant 0xFF800000", "%hidden = arith.constant -100.0")],
     r"+^((?!mask).)* score \{$"),
    ("hidden_zero", [("%hidden = arith.constant 0xFF800000", "%hidden = arith.constant 0.0")],
     r"+^((?!mask).)* score \{$"),
    ("hidden_finite", [("%hidden = arith.constant 0xFF800000", "%hidden = arith.constant -1.0e9")],
     "+" + MASK.format("causal = true")),
    ("row_without_key", [("%c4 = arith.constant 4", "%c4 = arith.constant -1")], "query 0 sees no key"),
    ("added_mask", [("%masked = arith.select %seen, %scaled, %hidden : f32",
                     "%bias = arith.select %seen, %zero, %hidden : f32\n    %masked = arith.addf %scaled, %bias : f32")],
     "+" + MASK.format("causal = true")),
    ("subtracted_mask", [("%masked = arith.select %seen, %scaled, %hidden : f32",
                          "%bias = arith.select %seen, %zero, %hidden : f32\n    %masked = arith.subf %scaled, %bias : f32")],
     r"+^((?!mask).)* score \{$"),
    ("added_distance", [("%masked =", "%f = arith.index_cast %j : index to i32\n    %g = arith.sitofp %f : i32 to f32\n"
                         "    %t = arith.addf %scaled, %g : f32\n    %masked ="), (SELECT, "arith.select %seen, %t, %hidden")],
     "+" + MASK.format("causal = true") + r".* score \{$"),
    # Numbers hide from rows that see a key: where one may see none, hidden scores stay.
    ("finite_top_left", [("%c4 = arith.constant 4", "%c4 = arith.constant 0"), FINITE], NO_MASK + r" visible \{$"),
    ("finite_row_without_key", [("%c4 = arith.constant 4", "%c4 = arith.constant -1"), FINITE], NO_MASK + r" score \{$"),
    ("length", [*LENGTH, FINITE], NO_MASK + r" score \{$"),
    ("length_infinite", LENGTH, NO_MASK + r" visible \{$"),
    ("length_of_one_or_more", [*LENGTH, FINITE, ("%n1 = arith.addi %n0, %i0", "%n1 = arith.maxsi %n0, %i1")],
     NO_MASK + r" visible \{$"),
    ("length_inclusive", [*LENGTH, FINITE, ("cmpi slt", "cmpi sle")], NO_MASK + r" score \{$"),
    ("length_inclusive_unsigned", [*LENGTH, FINITE, ("cmpi slt", "cmpi ule")], NO_MASK + r" visible \{$"),
    ("length_added", [*LENGTH, *ADDED, FINITE], NO_MASK + r" score \{$"),
    ("length_added_infinite", [*LENGTH, *ADDED], NO_MASK + r" visible \{$"),
    ("starts", [*LENGTH, FINITE, ("cmpi slt", "cmpi sge")], NO_MASK + r" score \{$"),
    ("starts_before_the_end", [*LENGTH, FINITE, ("cmpi slt", "cmpi sge"),
                               ("%n1 = arith.addi %n0, %i0", "%n1 = arith.minsi %n0, %i11")], NO_MASK + r" visible \{$"),
    # A window, and more that may take a row's last key, or show hidden ones.
    ("causal_and_length", [*LENGTH, *BOTH, FINITE], NO_MASK + r" score \{$"),
    ("causal_and_length_infinite", [*LENGTH, *BOTH], "+" + MASK.format("causal = true") + r".* visible \{$"),
    ("causal_and_one_or_more", [*LENGTH, *BOTH, FINITE, ("%n1 = arith.addi %n0, %i0", "%n1 = arith.maxsi %n0, %i1")],
     "+" + MASK.format("causal = true") + r".* visible \{$"),
    ("causal_then_finite_length", [*LENGTH, *BOTH, ("%short, %masked, %hidden", "%short, %masked, %low"),
                                   ("%c4 =", "%low = arith.constant -1.0e9 : f32\n  %c4 =")], NO_MASK + r" score \{$"),
    ("finite_length_then_causal", [*LENGTH, *BOTH, ("arith.select %seen, %scaled, %hidden", "arith.select %short, %scaled, %low"),
                                   ("%short, %masked, %hidden", "%seen, %masked, %hidden"),
                                   ("%c4 =", "%low = arith.constant -1.0e9 : f32\n  %c4 =")],
     "+" + MASK.format("causal = true") + r".* score \{$"),
    ("shown_after_causal", [*LENGTH, *BOTH, ("%short, %masked, %hidden", "%short, %masked, %zero")], NO_MASK + r" score \{$"),
    ("bias_and_causal", [*BIAS], "+" + MASK.format("causal = true") + r".* score \{$"),
    ("bias_and_finite_causal", [*BIAS, FINITE], NO_MASK + r" score \{$"),
    ("distance_and_finite_causal", [("%masked =", "%f = arith.index_cast %j : index to i32\n    %g = arith.sitofp %f : i32 to f32\n"
                                     "    %t = arith.addf %scaled, %g : f32\n    %masked ="),
                                    (SELECT, "arith.select %seen, %t, %hidden"), FINITE],
     "+" + MASK.format("causal = true") + r".* score \{$"),
    # Numbers that are no tensors, and tensors that kernels do not read.
    ("position", [("%v: tensor<2x12x16xbf16>)", "%v: tensor<2x12x16xbf16>, %n: index)"), ("arith.cmpi sle, %j, %p", "arith.cmpi ule, %j, %n")],
     NO_MASK + r"captures\(%\w+ : tensor<i64>\) visible \{$"),
    ("factor", [*BIAS, ("%n: tensor<2xf32>)", "%n: f32)"), ("tensor.extract %n[%h] : tensor<2xf32>", "arith.negf %n : f32")],
     r"+captures\(%\w+ : tensor<f32>\) score \{$"),
    ("bias_of_f64", [*BIAS, ("%n: tensor<2xf32>)", "%n: tensor<2xf64>)"),
                     ("%x = tensor.extract %n[%h] : tensor<2xf32>", "%w = tensor.extract %n[%h] : tensor<2xf64>\n    %x = arith.truncf %w : f64 to f32")],
     "computed by more than elements of tensors"),
    # Caps.
    ("capped", [(SCALED, SCALED + "    %c20 = arith.constant 20.0 : f32\n    %u = arith.divf %scaled, %c20 : f32\n"
                 "    %t = math.tanh %u : f32\n    %cap = arith.mulf %t, %c20 : f32\n"),
                (SELECT, "arith.select %seen, %cap, %hidden")], r"+scale = 2\.500000e-01 : f32, softcap = 2\.0"),
    ("caps_differ", [(SCALED, SCALED + "    %c20 = arith.constant 20.0 : f32\n    %c10 = arith.constant 10.0 : f32\n"
                      "    %u = arith.divf %scaled, %c20 : f32\n    %t = math.tanh %u : f32\n    %cap = arith.mulf %t, %c10 : f32\n"),
                     (SELECT, "arith.select %seen, %cap, %hidden")], r"+scale = 1\.250000e-01 : f32, softcap = 1\.0"),
    ("cap_after_mask", [("linalg.yield %masked", "%t = math.tanh %masked : f32\n    linalg.yield %t")],
     "capped after they are masked"),
    # The softmax.
    ("max_over_queries", [("ins(%s, %m : tensor<2x8x12xf32>, tensor<2x8xf32>)", "ins(%s, %m : tensor<2x8x12xf32>, tensor<2x12xf32>)"),
                          ("%m = linalg.generic {indexing_maps = [#hij, #hi], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}",
                           "%n = tensor.empty() : tensor<2x12xf32>\n  %fn = linalg.fill ins(%lowest : f32) outs(%n : tensor<2x12xf32>) -> tensor<2x12xf32>\n"
                           "  %m = linalg.generic {indexing_maps = [#hij, #hj], iterator_types = [\"parallel\", \"reduction\", \"parallel\"]}"),
                          ("outs(%fm : tensor<2x8xf32>)", "outs(%fn : tensor<2x12xf32>)"),
                          ("%max : f32\n  } -> tensor<2x8xf32>", "%max : f32\n  } -> tensor<2x12xf32>"),
                          ("%e = linalg.generic {indexing_maps = [#hij, #hi,", "%e = linalg.generic {indexing_maps = [#hij, #hj,")],
     "is not their maximum over the keys"),
    ("max_of_unmasked", [("ins(%s : tensor<2x8x12xf32>) outs(%fm", "ins(%qk : tensor<2x8x12xf32>) outs(%fm")],
     "is not their maximum over the keys"),
    ("min", [("arith.maximumf", "arith.minimumf")], "is not their maximum over the keys"),
    ("max_from_zero", [("%lowest = arith.constant 0xFF800000", "%lowest = arith.constant 0.0")],
     "is not their maximum over the keys"),
    ("max_added", [("%d = arith.subf %a, %b", "%d = arith.addf %a, %b")], "not of a difference from the row's maximum"),
    ("max_minus_scores", [("%d = arith.subf %a, %b", "%d = arith.subf %b, %a")], "is not their maximum"),
    ("no_max", [(EXP, "%x = math.exp %a : f32")], "not of a difference from the row's maximum"),
    ("sum_over_queries", [("ins(%e, %l : tensor<2x8x12xf32>, tensor<2x8xf32>)", "ins(%e, %l : tensor<2x8x12xf32>, tensor<2x12xf32>)"),
                          ("%l = linalg.generic {indexing_maps = [#hij, #hi], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}",
                           "%n = tensor.empty() : tensor<2x12xf32>\n  %fn = linalg.fill ins(%zero : f32) outs(%n : tensor<2x12xf32>) -> tensor<2x12xf32>\n"
                           "  %l = linalg.generic {indexing_maps = [#hij, #hj], iterator_types = [\"parallel\", \"reduction\", \"parallel\"]}"),
                          ("outs(%fl : tensor<2x8xf32>)", "outs(%fn : tensor<2x12xf32>)"),
                          ("%plus : f32\n  } -> tensor<2x8xf32>\n  %w", "%plus : f32\n  } -> tensor<2x12xf32>\n  %w"),
                          ("%w = linalg.generic {indexing_maps = [#hij, #hi,", "%w = linalg.generic {indexing_maps = [#hij, #hj,")],
     "something else than the sum"),
    ("sum_from_one", [("%fl = linalg.fill ins(%zero : f32)", "%one = arith.constant 1.0 : f32\n  %fl = linalg.fill ins(%one : f32)")],
     "something else than the sum"),
    ("sum_of_scores", [("ins(%e : tensor<2x8x12xf32>) outs(%fl", "ins(%s : tensor<2x8x12xf32>) outs(%fl")],
     "something else than the sum"),
    ("sum_of_squares", [("%plus = arith.addf %a, %c", "%aa = arith.mulf %a, %a : f32\n    %plus = arith.addf %aa, %c")],
     "something else than the sum"),
    ("not_normalized", [("%x = arith.divf %a, %b", "%x = arith.addf %a, %zero")], None),
    ("weights_times_values", [("ins(%w, %v", "ins(%e, %v")], "not divided by their sum"),
    ("multiplied_by_sum", [("%x = arith.divf %a, %b", "%x = arith.mulf %a, %b")], None),
    ("sum_divided", [("%x = arith.divf %a, %b", "%x = arith.divf %b, %a")], None),
    # Products.
    ("absolute_value", [("%sum = arith.addf %c, %xy", "%abs = math.absf %xy : f32\n    %sum = arith.addf %c, %abs")],
     "scores are no product"),
    ("difference", [("%xy = arith.mulf %x, %y : f32\n    %sum", "%xy = arith.subf %x, %y : f32\n    %sum")],
     "scores are no product"),
    ("scores_from_one", [("%fs = linalg.fill ins(%zero", "%one = arith.constant 1.0 : f32\n  %fs = linalg.fill ins(%one")],
     "scores are no product"),
    ("transposed_weights", [("2x12x", "2x8x"), ("8x12x", "8x8x"), ("%c4 = arith.constant 4", "%c4 = arith.constant 0"),
                            ("indexing_maps = [#hi_j,", "indexing_maps = [#swapped,")], "something else than the sum"),
    ("keys_as_values", [("ins(%w, %v", "ins(%w, %k")], "+" + MASK.format("causal = true")),
    # Types.
    ("f32_result", [("return %rEXTRA_VALUE : tensor<2x8x16xbf16>", "return %o : tensor<2x8x16xf32>"),
                    ("-> (tensor<2x8x16xbf16>", "-> (tensor<2x8x16xf32>"),
                    ("ins(%o :", "ins(%fo :")], "+" + MASK.format("causal = true") + ".*-> tensor<2x8x1x16xf32>"),
    ("f16_result", [("return %rEXTRA_VALUE : tensor<2x8x16xbf16>", "return %rEXTRA_VALUE : tensor<2x8x16xf16>"),
                    ("-> (tensor<2x8x16xbf16>", "-> (tensor<2x8x16xf16>"), ("f32 to bf16", "f32 to f16"), ("%c: bf16", "%c: f16"),
                    ("linalg.yield %x : bf16", "linalg.yield %x : f16"),
                    ("%er = tensor.empty() : tensor<2x8x16xbf16>", "%er = tensor.empty() : tensor<2x8x16xf16>"),
                    ("outs(%er : tensor<2x8x16xbf16>", "outs(%er : tensor<2x8x16xf16>"),
                    ("} -> tensor<2x8x16xbf16>", "} -> tensor<2x8x16xf16>")],
     "+" + MASK.format("causal = true") + ".*-> tensor<2x8x1x16xf32>"),
    # Users.
    ("scores_returned", [("EXTRA_TYPE", ", tensor<2x8x12xf32>"), ("EXTRA_VALUE", ", %s")],
     "of 'linalg.generic', has another user, 'func.return'"),
    ("sum_returned", [("EXTRA_TYPE", ", tensor<2x8xf32>"), ("EXTRA_VALUE", ", %l")],
     "of 'linalg.generic', has another user, 'func.return'"),
    ("weights_returned", [("EXTRA_TYPE", ", tensor<2x8x12xf32>"), ("EXTRA_VALUE", ", %w")],
     "of 'linalg.generic', has another user, 'func.return'"),
]


def main():
    lines, places = MAPS.splitlines(), []
    for name, edits, expected in CASES:
        graph = edit(GRAPH, edits).replace("EXTRA_TYPE", "").replace(
            "EXTRA_VALUE", "").replace("NAME", name)
        start = len(lines)
        lines += graph.splitlines()
        places.append((start, len(lines)))
    done = subprocess.run(
        ["kvbuf-opt", "-", "--kvbuf-raise-attention",
         "--mlir-print-local-scope", "--remark-format=emitRemark",
         "--remarks-filter=kvbuf-raise-attention"],
        input="\n".join(lines), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[:2000])
    remarks = [(int(line), text) for line, text in
               re.findall(r'^\S*?:(\d+):\d+: remark: (.*)$', done.stderr, re.M)]
    raised = {name: body for name, body in re.findall(
        r"func\.func @(\w+)\((.*?)\n  }\n", done.stdout, re.S)}
    failed = 0
    for (name, _, expected), (start, end) in zip(CASES, places):
        said = [text for line, text in remarks if start < line <= end]
        attention = re.search(r"kvbuffer\.attention .*", raised[name])
        if expected is None:
            good = not attention
        elif expected.startswith("+"):
            good = attention and re.search(expected[1:], attention[0])
        else:
            good = (not attention and len(said) == 1 and
                    "[Missed]" in said[0] and re.search(expected, said[0]))
        if not good:
            failed += 1
            print(f"{name}: expected {expected}\n  said {said}\n  "
                  f"{attention and attention[0]}")
    if failed:
        sys.exit(f"{failed} of {len(CASES)} cases failed")


main()
