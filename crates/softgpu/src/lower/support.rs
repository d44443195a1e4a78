// The instructions of PTX 9.0 and samples of their forms. Included by `tests`.

const SECTIONS: &[(&str, &[Row])] = &[
    ("Integer arithmetic", INTEGER),
    ("Extended-precision integer arithmetic", EXTENDED),
    ("Floating-point arithmetic", FLOAT),
    ("Half-precision floating-point arithmetic", HALF),
    ("Mixed-precision floating-point arithmetic", MIXED),
    ("Comparison and selection", COMPARISON),
    ("Logic and shift", LOGIC),
    ("Data movement and conversion", MOVEMENT),
    ("Asynchronous copies", ASYNC),
    ("Texture and surface", TEXTURE),
    ("Control flow", CONTROL),
    ("Parallel synchronisation and communication", SYNC),
    ("Warp-level matrix multiply-accumulate", MATRIX),
    ("Stack manipulation", STACK),
    ("Video", VIDEO),
    ("Miscellaneous", MISC),
];

const INTEGER: &[Row] = &[
    yes(
        "add",
        &[
            "add.s32 r, s, t;",
            "add.sat.s32 r, s, 1;",
            "add.u64 d, a, b;",
            "add.s16 h, i, j;",
            "add.u16x2 r, s, t;",
        ],
    ),
    yes("sub", &["sub.s32 r, s, t;", "sub.sat.s32 r, s, 1;", "sub.s64 d, a, b;"]),
    yes(
        "mul",
        &["mul.lo.s32 r, s, t;", "mul.hi.u64 d, a, b;", "mul.wide.s16 r, h, i;", "mul.wide.u32 d, r, s;"],
    ),
    yes(
        "mad",
        &[
            "mad.lo.s32 r, s, t, u;",
            "mad.hi.s32 r, s, t, u;",
            "mad.hi.sat.s32 r, s, t, u;",
            "mad.wide.u32 d, r, s, a;",
        ],
    ),
    yes("mul24", &["mul24.lo.s32 r, s, t;", "mul24.hi.u32 r, s, t;"]),
    yes("mad24", &["mad24.lo.s32 r, s, t, u;", "mad24.hi.sat.s32 r, s, t, u;"]),
    yes("sad", &["sad.u16 h, i, j, h;", "sad.s32 r, s, t, u;", "sad.u64 d, a, b, c;"]),
    yes("div", &["div.s16 h, i, j;", "div.u32 r, s, t;", "div.s64 d, a, b;"]),
    yes("rem", &["rem.u16 h, i, j;", "rem.s32 r, s, t;", "rem.u64 d, a, b;"]),
    yes("abs", &["abs.s16 h, i;", "abs.s32 r, s;", "abs.s64 d, a;"]),
    yes("neg", &["neg.s16 h, i;", "neg.s32 r, s;", "neg.s64 d, a;"]),
    yes(
        "min",
        &[
            "min.u16 h, i, j;",
            "min.s32 r, s, t;",
            "min.relu.s32 r, s, t;",
            "min.u64 d, a, b;",
            "min.s16x2 r, s, t;",
        ],
    ),
    yes(
        "max",
        &[
            "max.u16 h, i, j;",
            "max.s32 r, s, t;",
            "max.relu.s16x2 r, s, t;",
            "max.u64 d, a, b;",
            "max.u16x2 r, s, t;",
        ],
    ),
    yes("popc", &["popc.b32 r, s;", "popc.b64 r, d;"]),
    yes("clz", &["clz.b32 r, s;", "clz.b64 r, d;"]),
    yes("bfind", &["bfind.u32 r, s;", "bfind.shiftamt.s64 r, d;"]),
    yes("fns", &["fns.b32 r, s, t, u;"]),
    yes("brev", &["brev.b32 r, s;", "brev.b64 d, a;"]),
    yes("bfe", &["bfe.u32 r, s, t, u;", "bfe.s64 d, a, r, s;"]),
    yes("bfi", &["bfi.b32 r, s, t, u, v;", "bfi.b64 d, a, b, r, s;"]),
    yes("bmsk", &["bmsk.clamp.b32 r, s, t;", "bmsk.wrap.b32 r, s, t;"]),
    yes("szext", &["szext.clamp.s32 r, s, t;", "szext.wrap.u32 r, s, t;"]),
    yes("dp4a", &["dp4a.u32.s32 r, s, t, u;"]),
    yes("dp2a", &["dp2a.lo.u32.s32 r, s, t, u;", "dp2a.hi.s32.s32 r, s, t, u;"]),
];

const EXTENDED: &[Row] = &[
    yes("add.cc", &["add.cc.u32 r, s, t;", "add.cc.s64 d, a, b;"]),
    yes("addc", &["addc.u32 r, s, t;", "addc.cc.u64 d, a, b;"]),
    yes("sub.cc", &["sub.cc.u32 r, s, t;"]),
    yes("subc", &["subc.cc.u32 r, s, t;", "subc.s64 d, a, b;"]),
    yes("mad.cc", &["mad.lo.cc.u32 r, s, t, u;", "mad.hi.cc.u64 d, a, b, c;"]),
    yes("madc", &["madc.lo.u32 r, s, t, u;", "madc.hi.cc.s32 r, s, t, u;"]),
];

const FLOAT: &[Row] = &[
    yes("testp", &["testp.finite.f32 p, f;", "testp.subnormal.f64 p, x;"]),
    yes("copysign", &["copysign.f32 f, g, e;", "copysign.f64 x, y, z;"]),
    yes("add", &["add.f32 f, g, e;", "add.rz.ftz.sat.f32 f, g, e;", "add.rp.f64 x, y, z;"]),
    yes("sub", &["sub.rn.ftz.f32 f, g, e;", "sub.rm.f64 x, y, z;"]),
    yes("mul", &["mul.f32 f, g, 0f40000000;", "mul.rz.sat.f32 f, g, e;", "mul.f64 x, y, z;"]),
    yes("fma", &["fma.rn.f32 f, g, e, f;", "fma.rz.ftz.sat.f32 f, g, e, f;", "fma.rp.f64 x, y, z, x;"]),
    yes("mad", &["mad.rn.f32 f, g, e, f;", "mad.rn.f64 x, y, z, x;"]),
    yes(
        "div",
        &[
            "div.rn.f32 f, g, e;",
            "div.approx.ftz.f32 f, g, e;",
            "div.full.f32 f, g, e;",
            "div.rz.f64 x, y, z;",
        ],
    ),
    yes("abs", &["abs.ftz.f32 f, g;", "abs.f64 x, y;"]),
    yes("neg", &["neg.ftz.f32 f, g;", "neg.f64 x, y;"]),
    part(
        "min",
        &["min.f32 f, g, e;", "min.ftz.NaN.xorsign.abs.f32 f, g, e;", "min.f64 x, y, z;"],
        &[],
        "two operands; three need sm_100",
    ),
    part(
        "max",
        &["max.f32 f, g, e;", "max.ftz.NaN.xorsign.abs.f32 f, g, e;", "max.f64 x, y, z;"],
        &[],
        "two operands; three need sm_100",
    ),
    yes(
        "rcp",
        &["rcp.approx.ftz.f32 f, g;", "rcp.rn.f32 f, g;", "rcp.rz.f64 x, y;", "rcp.approx.ftz.f64 x, y;"],
    ),
    yes("sqrt", &["sqrt.approx.f32 f, g;", "sqrt.rn.ftz.f32 f, g;", "sqrt.rp.f64 x, y;"]),
    yes("rsqrt", &["rsqrt.approx.f32 f, g;", "rsqrt.approx.ftz.f64 x, y;"]),
    yes("sin", &["sin.approx.f32 f, g;"]),
    yes("cos", &["cos.approx.ftz.f32 f, g;"]),
    yes("lg2", &["lg2.approx.f32 f, g;"]),
    yes("ex2", &["ex2.approx.ftz.f32 f, g;"]),
    yes("tanh", &["tanh.approx.f32 f, g;"]),
];

const HALF: &[Row] = &[
    yes(
        "add",
        &["add.rn.f16 h, i, j;", "add.ftz.sat.f16x2 r, s, t;", "add.rn.bf16 h, i, j;", "add.bf16x2 r, s, t;"],
    ),
    yes("sub", &["sub.f16 h, i, j;", "sub.f16x2 r, s, t;", "sub.bf16 h, i, j;", "sub.bf16x2 r, s, t;"]),
    yes("mul", &["mul.f16 h, i, j;", "mul.f16x2 r, s, t;", "mul.bf16 h, i, j;", "mul.bf16x2 r, s, t;"]),
    yes(
        "fma",
        &["fma.rn.f16 h, i, j, h;", "fma.rn.ftz.relu.f16x2 r, s, t, u;", "fma.rn.oob.bf16 h, i, j, h;"],
    ),
    yes("neg", &["neg.f16 h, i;", "neg.bf16x2 r, s;"]),
    yes("abs", &["abs.f16x2 r, s;", "abs.bf16 h, i;"]),
    yes("min", &["min.NaN.f16 h, i, j;", "min.ftz.f16x2 r, s, t;", "min.xorsign.abs.bf16x2 r, s, t;"]),
    yes("max", &["max.f16 h, i, j;", "max.NaN.bf16 h, i, j;", "max.f16x2 r, s, t;"]),
    yes("tanh", &["tanh.approx.f16 h, i;", "tanh.approx.bf16x2 r, s;"]),
    yes("ex2", &["ex2.approx.f16x2 r, s;", "ex2.approx.ftz.bf16 h, i;"]),
];

const MIXED: &[Row] = &[
    no("add", &["add.f32.bf16 f, h, g;"]),
    no("sub", &["sub.f32.f16 f, h, g;"]),
    no("fma", &["fma.rn.f32.f16 f, h, i, g;"]),
];

const COMPARISON: &[Row] = &[
    yes(
        "set",
        &[
            "set.lt.u32.s32 r, s, t;",
            "set.eq.and.f32.u32 f, r, s, p;",
            "set.geu.f16x2.f16x2 r, s, t;",
            "set.lt.u32.f64 r, x, y;",
        ],
    ),
    yes(
        "setp",
        &[
            "setp.lt.s32 p, r, s;",
            "setp.ne.or.b64 p|q, d, a, !p;",
            "setp.nan.ftz.f32 p, f, g;",
            "setp.gt.bf16x2 p|q, r, s;",
        ],
    ),
    yes("selp", &["selp.b32 r, s, t, p;", "selp.f64 x, y, z, p;", "selp.b16 h, i, j, p;"]),
    yes("slct", &["slct.b32.s32 r, s, t, u;", "slct.ftz.f64.f32 x, y, z, f;"]),
];

const LOGIC: &[Row] = &[
    yes("and", &["and.b32 r, s, t;", "and.pred p, q, p;", "and.b64 d, a, b;"]),
    yes("or", &["or.b16 h, i, j;", "or.pred p, q, p;"]),
    yes("xor", &["xor.b64 d, a, b;", "xor.pred p, q, p;"]),
    yes("not", &["not.b32 r, s;", "not.pred p, q;"]),
    yes("cnot", &["cnot.b16 h, i;", "cnot.b64 d, a;"]),
    yes("lop3", &["lop3.b32 r, s, t, u, 0x3f;", "lop3.or.b32 r|p, s, t, u, 0x3f, q;"]),
    yes("shf", &["shf.l.clamp.b32 r, s, t, u;", "shf.r.wrap.b32 r, s, t, u;"]),
    yes("shl", &["shl.b16 h, i, 3;", "shl.b32 r, s, t;", "shl.b64 d, a, r;"]),
    yes("shr", &["shr.u16 h, i, 3;", "shr.s32 r, s, t;", "shr.b64 d, a, r;"]),
];

const MOVEMENT: &[Row] = &[
    yes(
        "mov",
        &[
            "mov.b32 r, s;",
            "mov.u64 d, sh;",
            "mov.u64 d, sh[8];",
            "mov.b64 {r, s}, d;",
            "mov.b128 w, {d, a};",
            "mov.pred p, q;",
            "mov.u32 r, %tid.x;",
        ],
    ),
    no("shfl", &["shfl.down.b32 r, s, t, u;"]),
    yes("shfl.sync", &["shfl.sync.down.b32 r|p, s, t, u, v;", "shfl.sync.idx.b32 r, s, 0, 31, 0xffffffff;"]),
    yes("prmt", &["prmt.b32 r, s, t, u;", "prmt.b32.f4e r, s, t, u;"]),
    part(
        "ld",
        &[
            "ld.global.u32 r, [d];",
            "ld.v4.f32 {f, g, e, f}, [d+16];",
            "ld.shared.b64 d, [r];",
            "ld.relaxed.gpu.global.b128 w, [d];",
            "ld.param.u64 d, [given];",
        ],
        &[],
        "the address of a device function's parameter cannot be taken",
    ),
    yes("ld.global.nc", &["ld.global.nc.L1::no_allocate.L2::128B.v2.u64 {d, a}, [b];"]),
    yes("ldu", &["ldu.global.u32 r, [d];"]),
    yes(
        "st",
        &[
            "st.global.u8 [d], h;",
            "st.shared.v2.b32 [sh+8], {r, s};",
            "st.release.sys.u64 [d], a;",
            "st.b128 [d], w;",
        ],
    ),
    no("st.async", &["st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [r], s, [t];"]),
    no("st.bulk", &["st.bulk.weak.shared::cta [d], a, 0;"]),
    no(
        "red.async",
        &["red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [r], s, [t];"],
    ),
    no("multimem.ld_reduce", &["multimem.ld_reduce.global.add.u32 r, [d];"]),
    no("multimem.st", &["multimem.st.global.u32 [d], r;"]),
    no("multimem.red", &["multimem.red.global.add.u32 [d], r;"]),
    yes("prefetch", &["prefetch.global.L2 [d];"]),
    yes("prefetchu", &["prefetchu.L1 [d];"]),
    yes("applypriority", &["applypriority.global.L2::evict_normal [d], 128;"]),
    yes("discard", &["discard.global.L2 [d], 128;"]),
    yes("createpolicy", &["createpolicy.fractional.L2::evict_last.b64 d, 0f3F800000;"]),
    yes("isspacep", &["isspacep.shared p, d;", "isspacep.param p, d;"]),
    yes("cvta", &["cvta.global.u64 d, a;", "cvta.to.shared.u64 d, a;", "cvta.param.u64 d, a;"]),
    part(
        "cvt",
        &[
            "cvt.u32.u64 r, d;",
            "cvt.rzi.s32.f32 r, f;",
            "cvt.rn.satfinite.e4m3x2.f32 h, f, g;",
            "cvt.rna.tf32.f32 r, f;",
            "cvt.rn.bf16x2.f32 r, f, g;",
            "cvt.rn.f16x2.e5m2x2 r, h;",
        ],
        &[],
        "not the formats and stochastic rounding of sm_100",
    ),
    part(
        "cvt.pack",
        &["cvt.pack.sat.s16.s32 r, s, t;", "cvt.pack.sat.u8.s32.b32 r, s, t, u;"],
        &[],
        "to 16 and 8 bits",
    ),
    part("mapa", &["mapa.shared::cluster.u32 r, s, t;"], &[], "clusters have one block"),
    part("getctarank", &["getctarank.shared::cluster.u32 r, s;"], &[], "clusters have one block"),
];

const ASYNC: &[Row] = &[
    part(
        "cp.async",
        &["cp.async.ca.shared.global [r], [d], 16;", "cp.async.cg.shared.global.L2::128B [r], [d], 16, s;"],
        &[],
        "done at once",
    ),
    yes("cp.async.commit_group", &["cp.async.commit_group;"]),
    yes("cp.async.wait_group", &["cp.async.wait_group 2;", "cp.async.wait_all;"]),
    no("cp.async.mbarrier.arrive", &["cp.async.mbarrier.arrive.shared.b64 [r];"]),
    no(
        "cp.async.bulk",
        &["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r], [d], s, [t];"],
    ),
    no("cp.reduce.async.bulk", &["cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [d], [r], s;"]),
    no("cp.async.bulk.prefetch", &["cp.async.bulk.prefetch.L2.global [d], r;"]),
    no(
        "cp.async.bulk.tensor",
        &["cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [r], [d, {s}], [t];"],
    ),
    no("cp.async.bulk.commit_group", &["cp.async.bulk.commit_group;"]),
    no("cp.async.bulk.wait_group", &["cp.async.bulk.wait_group 0;"]),
    no("tensormap.replace", &["tensormap.replace.tile.rank.global.b1024.b32 [d], 1;"]),
    no(
        "tensormap.cp_fenceproxy",
        &[
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d], [r], 128;",
        ],
    ),
];

const TEXTURE: &[Row] = &[
    no("tex", &["tex.1d.v4.f32.f32 {f, g, e, f}, [d, {f}];"]),
    no("tld4", &["tld4.r.2d.v4.f32.f32 {f, g, e, f}, [d, {f, g}];"]),
    no("txq", &["txq.width.b32 r, [d];"]),
    no("istypep", &["istypep.texref p, d;"]),
    no("suld", &["suld.b.1d.b32.trap r, [d, {s}];"]),
    no("sust", &["sust.b.1d.b32.trap [d, {s}], r;"]),
    no("sured", &["sured.b.add.1d.u32.trap [d, {s}], r;"]),
    no("suq", &["suq.width.b32 r, [d];"]),
];

const CONTROL: &[Row] = &[
    yes("{ }", &["{ .reg .b32 inner; mov.b32 inner, 1; }"]),
    yes("@", &["@p mov.b32 r, s;", "@!p bra L;"]),
    yes("bra", &["bra L;", "bra.uni L;"]),
    yes("brx.idx", &["brx.idx r, T;"]),
    part(
        "call",
        &["call callee;", "call.uni callee, ();", "P: .callprototype _ (); call d, (), P;"],
        &[],
        "`vprintf` and `__assertfail` work; running `malloc` or `free` faults",
    ),
    yes("ret", &["@p ret;"]),
    yes("exit", &["@p exit;"]),
];

const SYNC: &[Row] = &[
    yes(
        "bar, barrier",
        &[
            "bar.sync 0;",
            "bar.arrive 1, 64;",
            "barrier.cta.red.popc.aligned.u32 r, 0, p;",
            "bar.red.and.pred p, 1, 64, !q;",
            "barrier.sync r, s;",
        ],
    ),
    yes("bar.warp.sync", &["bar.warp.sync 0xffffffff;"]),
    part(
        "barrier.cluster",
        &["barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire;"],
        &[],
        "clusters have one block",
    ),
    yes(
        "membar, fence",
        &[
            "membar.gl;",
            "fence.acq_rel.gpu;",
            "fence.sc.sys;",
            "fence.proxy.async;",
            "fence.mbarrier_init.release.cluster;",
        ],
    ),
    part(
        "atom",
        &[
            "atom.global.add.f32 f, [d], g;",
            "atom.cas.b64 d, [a], b, c;",
            "atom.shared.inc.u32 r, [s], t;",
            "atom.acquire.gpu.exch.b32 r, [d], s;",
            "atom.add.noftz.f16x2 r, [d], s;",
            "atom.cas.b16 h, [d], i, j;",
        ],
        &["atom.cas.b128 w, [d], w, w;"],
        "not of 128 bits",
    ),
    yes(
        "red",
        &["red.global.add.u64 [d], a;", "red.shared.or.b32 [r], s;", "red.global.add.v2.f32 [d], {f, g};"],
    ),
    no("vote", &["vote.all.pred p, q;"]),
    yes("vote.sync", &["vote.sync.ballot.b32 r, p, s;", "vote.sync.uni.pred p, !q, 0xffffffff;"]),
    yes("match.sync", &["match.any.sync.b32 r, s, t;", "match.all.sync.b64 r|p, d, s;"]),
    yes("activemask", &["activemask.b32 r;"]),
    part(
        "redux.sync",
        &["redux.sync.add.u32 r, s, t;", "redux.sync.min.s32 r, s, t;", "redux.sync.xor.b32 r, s, t;"],
        &["redux.sync.min.f32 f, g, r;"],
        "of integers; floats need sm_100a",
    ),
    yes("griddepcontrol", &["griddepcontrol.wait;", "griddepcontrol.launch_dependents;"]),
    yes("elect.sync", &["elect.sync r|p, s;"]),
    yes("mbarrier.init", &["mbarrier.init.shared.b64 [r], 32;"]),
    yes("mbarrier.inval", &["mbarrier.inval.shared::cta.b64 [r];"]),
    no("mbarrier.expect_tx", &["mbarrier.expect_tx.relaxed.cta.shared.b64 [r], 16;"]),
    no("mbarrier.complete_tx", &["mbarrier.complete_tx.relaxed.cta.shared.b64 [r], 16;"]),
    part(
        "mbarrier.arrive",
        &["mbarrier.arrive.shared.b64 d, [r];", "mbarrier.arrive.release.cta.shared::cta.b64 d, [r], 4;"],
        &["mbarrier.arrive.expect_tx.shared.b64 d, [r], 16;"],
        "without transactions",
    ),
    yes("mbarrier.arrive_drop", &["mbarrier.arrive_drop.shared.b64 d, [r];"]),
    yes(
        "mbarrier.test_wait",
        &["mbarrier.test_wait.shared.b64 p, [r], d;", "mbarrier.test_wait.parity.shared.b64 p, [r], s;"],
    ),
    yes(
        "mbarrier.try_wait",
        &[
            "mbarrier.try_wait.acquire.cta.shared::cta.b64 p, [r], d;",
            "mbarrier.try_wait.parity.shared.b64 p, [r], s, t;",
        ],
    ),
    yes("mbarrier.pending_count", &["mbarrier.pending_count.b64 r, d;"]),
    no("clusterlaunchcontrol", &["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, w;"]),
];

const MATRIX: &[Row] = &[
    no("wmma.load", &["wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {f, g}, [d];"]),
    no("wmma.store", &["wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [d], {f, g};"]),
    no("wmma.mma", &["wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {f}, {r}, {s}, {f};"]),
    no("mma", &["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {f}, {r}, {s}, {f};"]),
    no("mma.sp", &["mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f}, {r}, {s}, {f}, t, 0;"]),
    no("ldmatrix", &["ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r}, [s];"]),
    no("stmatrix", &["stmatrix.sync.aligned.m8n8.x1.shared.b16 [r], {s};"]),
    no("movmatrix", &["movmatrix.sync.aligned.m8n8.trans.b16 r, s;"]),
    no("wgmma.mma_async", &["wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f}, d, a, p, 1, 1, 0, 0;"]),
    no("wgmma.fence", &["wgmma.fence.sync.aligned;"]),
    no("wgmma.commit_group", &["wgmma.commit_group.sync.aligned;"]),
    no("wgmma.wait_group", &["wgmma.wait_group.sync.aligned 0;"]),
    no("tcgen05 (all)", &["tcgen05.alloc.cta_group::1.sync.aligned.b32 [r], s;"]),
];

const STACK: &[Row] = &[
    yes("stacksave", &["stacksave.u64 d;"]),
    yes("stackrestore", &["stackrestore.u64 d;"]),
    yes("alloca", &["alloca.u64 d, a, 16;"]),
];

const VIDEO: &[Row] = &[
    no("vadd, vsub, vabsdiff, vmin, vmax", &["vadd.s32.s32.s32 r, s, t;", "vmax.u32.u32.u32 r, s, t;"]),
    no("vshl, vshr", &["vshl.u32.u32.u32.wrap r, s, t;"]),
    no("vmad", &["vmad.s32.s32.s32 r, s, t, u;"]),
    no("vset", &["vset.s32.s32.lt r, s, t;"]),
    part(
        "vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2",
        &["vadd2.s32.s32.s32.sat r, s, t, u;", "vavrg2.u32.u32.u32 r, s, t, u;"],
        &[],
        "without selectors",
    ),
    no("vset2", &["vset2.s32.s32.lt r, s, t, u;"]),
    part(
        "vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4",
        &["vadd4.u32.u32.u32.sat r, s, t, u;", "vabsdiff4.u32.u32.u32.add r, s, t, u;"],
        &[],
        "without selectors",
    ),
    no("vset4", &["vset4.u32.u32.lt r, s, t, u;"]),
];

const MISC: &[Row] = &[
    part("brkpt", &["brkpt;"], &[], "does nothing"),
    yes("nanosleep", &["nanosleep.u32 1000;"]),
    part("pmevent", &["pmevent 7;"], &[], "does nothing"),
    yes("trap", &["@p trap;"]),
    part("setmaxnreg", &["setmaxnreg.inc.sync.aligned.u32 240;"], &[], "does nothing"),
];
