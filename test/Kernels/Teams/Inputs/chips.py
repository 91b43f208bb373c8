"""What differs by chip in hand-written programs: one text, several machines."""

#: Instruction, lanes of a wave, rows that a warp's tile has, columns of an LDS
#: block, what the schedule adds, swizzle and policy of Q and K, and of V.
CHIPS = {
    "sm_80": ("[16, 8, 16]", 32, 16, 64, "", "[3, 0, 3]", "double_buffered",
              "[3, 0, 3]", "double_buffered"),
    "gfx942": ("[32, 32, 8]", 64, 32, 32,
               ", swap_a_b = true, v_path = registers", "[2, 0, 3]",
               "double_buffered", "", "register_staged"),
    "gfx950": ("[32, 32, 16]", 64, 32, 32,
               ", swap_a_b = true, v_path = direct", "[2, 0, 4]",
               "double_buffered", "", "double_buffered"),
}
CHIPS["sm_90a"] = CHIPS["sm_80"]


class Chip:
    """A chip's part of a program's text."""

    def __init__(self, name):
        self.name = name
        (self.shape, self.lanes, self.rows, self.BK, self.more, self.swizzle,
         self.policy, self.v_swizzle, self.v_policy) = CHIPS[name]

    def schedule(self, warps, BN, stages=2):
        """A schedule of so many warps, each with one instruction's rows."""
        return (f"#kvbuffer.schedule<BM = {self.rows * warps}, BN = {BN}, "
                f"BK = {self.BK}, stages = {stages}, warps = {warps}, "
                f"mma_shape = {self.shape}{self.more}>")

    def buffer(self, operand, rows, depth, stages, warps, more=""):
        """A buffer of `operand`, filled by so many warps."""
        swizzle = self.v_swizzle if operand == "v" else self.swizzle
        policy = self.v_policy if operand == "v" else self.policy
        swizzle = f"swizzle = {swizzle}, " if swizzle else ""
        wn = self.rows if operand == "q" else rows
        return (f"#kvbuffer.kv_buffer<{operand}, bf16, {policy}, "
                f"mma_shape = {self.shape}, {swizzle}BN = {rows}, WN = {wn}, "
                f"BK = {self.BK}, num_threads = {warps * self.lanes}, "
                f"depth = {depth}, kv_num_heads = 2, stages = {stages}, "
                f"warp_size = {self.lanes}{more}>")
