//! Mnemonics of all generations with their operations.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use crate::alu::AluOperation;

/// The operation of an instruction.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub enum Opcode {
    /// No effect on memory or registers: padding, hints, delays.
    NoEffect,
    End,
    Branch(JumpCondition),
    /// `s_waitcnt` with counters by name.
    Waitcnt,
    /// `s_waitcnt_depctr`, `s_wait_alu`: a wait for registers.
    DependencyWait,
    /// A wait until counters fall to one value.
    Wait(Vec<WaitCounter>),
    /// `s_barrier`: arrives and waits for the workgroup.
    Barrier,
    /// `s_barrier_signal`.
    BarrierSignal,
    /// `s_barrier_wait`.
    BarrierWait,
    /// Invalidates cache lines, or writes them back.
    Cache(CacheInstruction),
    Scalar(ScalarOperation),
    Vector(VectorOperation),
    /// An access to memory.
    Memory(MemoryInstruction),
    Unknown,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum JumpCondition {
    Always,
    SccZero,
    SccOne,
    VccZero,
    VccNotZero,
    ExecZero,
    ExecNotZero,
}

/// A counter of outstanding operations.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitCounter {
    /// `vmcnt`, `loadcnt`: vector loads and returning atomics; up to GFX9 stores as well.
    Vector,
    /// `vscnt`, `storecnt`: stores and atomics without result, from GFX10 on.
    Store,
    /// `lgkmcnt`: LDS, scalar memory, messages; from GFX12 on `dscnt` for LDS only.
    Lds,
    /// `kmcnt`: scalar memory, GFX12. Before, the same as [`WaitCounter::Lds`].
    Scalar,
    /// Counters that no wait here concerns: exports, sampling, ray tracing.
    Other,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheInstruction {
    /// `buffer_wbinvl1`, `buffer_wbinvl1_vol`, `buffer_gl0_inv`: invalidates the compute unit's vector cache.
    InvalidateVector,
    /// `buffer_gl1_inv`: invalidates the shader array's cache.
    InvalidateArray,
    /// `global_inv`: invalidates the caches that are narrower than its scope.
    InvalidateByScope,
    /// `global_wb`, `buffer_wbl2`: writes back by scope.
    WriteBack,
    /// `s_dcache_inv`: invalidates the scalar cache.
    InvalidateScalar,
    /// `s_dcache_wb`.
    WriteBackScalar,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum ScalarOperation {
    /// Bitwise over one or two registers. With `sets_scc`, scc is set if the result is nonzero.
    Bitwise { alu: AluOperation, wide: bool, sets_scc: bool },
    /// `s_movk_i32` and similar. With `accumulates`, the destination is also the first operand of `alu`.
    Constant { alu: AluOperation, accumulates: bool },
    /// Sums and differences. scc receives the carry, or the overflow of signed ones.
    Sum { subtract: bool, carry_in: bool, signed: bool },
    /// Other operations on words, with their effect on scc.
    Word { alu: AluOperation, scc_effect: SccEffect },
    /// Shifts of two words.
    Shift64 { left: bool },
    /// `s_bfm_b64`.
    Mask64,
    /// `s_cselect_b32`, `s_cselect_b64`.
    Select { wide: bool },
    /// `s_cmp_…`: sets scc.
    Compare { relation: CompareRelation, kind: CompareType },
    /// `s_bitcmp0_b32`, `s_bitcmp1_b32`.
    TestBit { set: bool },
    /// `s_and_saveexec_b64` and similar.
    SaveExec { alu: AluOperation, wide: bool },
}

/// The effect of an instruction on scc.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum SccEffect {
    Untouched,
    /// Set if the result is nonzero.
    NotZero,
    /// Set if the first operand is the result.
    FirstSelected,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum VectorOperation {
    /// Other operations on words. With `reverse`, the operands are exchanged.
    Word { alu: AluOperation, reverse: bool },
    /// Sums and differences with optional carry masks.
    Sum { subtract: bool, reverse: bool, carry_out: bool, carry_in: bool },
    /// With `reverse`, the amount is the first operand, as in later generations.
    Shift64 { left: bool, reverse: bool },
    /// `v_cndmask_b32`.
    Select,
    /// `v_cmp_…`, and `v_cmpx_…`, which writes exec.
    Compare { relation: CompareRelation, kind: CompareType, writes_exec: bool },
    /// `v_mbcnt_lo_u32_b32`, `v_mbcnt_hi_u32_b32`.
    MaskedBitCount { high: bool },
    /// `v_readfirstlane_b32`.
    ReadFirstLane,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum CompareRelation {
    #[serde(rename = "eq")]
    Equal,
    #[serde(rename = "ne", alias = "lg", alias = "neq")]
    NotEqual,
    #[serde(rename = "lt")]
    Less,
    #[serde(rename = "le")]
    LessOrEqual,
    #[serde(rename = "gt")]
    Greater,
    #[serde(rename = "ge")]
    GreaterOrEqual,
}

/// The type of compared values.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum CompareType {
    #[serde(rename = "u32")]
    Unsigned,
    #[serde(rename = "i32")]
    Signed,
    #[serde(rename = "f32")]
    Float,
    #[serde(rename = "u64")]
    Unsigned64,
    #[serde(rename = "i64")]
    Signed64,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct MemoryInstruction {
    pub path: MemoryPath,
    pub action: AccessAction,
    /// Bytes of one element.
    pub bytes: u8,
    /// `ds_read2_b32` and similar: two elements, whose offsets are in units of this many elements.
    pub pair_stride: Option<u8>,
    /// True if the upper half of the register is preserved, or not stored.
    #[serde(default)]
    pub low_half: bool,
    /// True if the upper half of the register is stored.
    #[serde(default)]
    pub high_half: bool,
}

impl MemoryInstruction {
    /// Returns true unless it is a plain scalar load.
    pub fn is_data(&self) -> bool {
        !matches!(self.path, MemoryPath::Scalar)
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryPath {
    /// Through a buffer descriptor.
    Buffer,
    /// Through a buffer descriptor that determines the element format.
    Texel,
    /// By address.
    Global,
    /// By address, possibly in LDS.
    Flat,
    /// Through an image descriptor.
    Image,
    /// The local data share.
    Lds,
    /// Scalar, by address.
    Scalar,
    /// Scalar, through a buffer descriptor.
    ScalarBuffer,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessAction {
    /// Reads; elements smaller than a word are extended.
    Load {
        /// True for sign extension.
        signed: bool,
    },
    Store,
    /// Reads and writes atomically.
    Atomic(AtomicOpcode),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AtomicOpcode {
    #[serde(rename = "swap")]
    Swap,
    #[serde(rename = "cmpswap")]
    CompareSwap,
    #[serde(rename = "add")]
    Add,
    #[serde(rename = "sub")]
    Sub,
    #[serde(rename = "and")]
    And,
    #[serde(rename = "or")]
    Or,
    #[serde(rename = "xor")]
    Xor,
    #[serde(rename = "smin")]
    MinSigned,
    #[serde(rename = "umin")]
    MinUnsigned,
    #[serde(rename = "smax")]
    MaxSigned,
    #[serde(rename = "umax")]
    MaxUnsigned,
    #[serde(rename = "add_f32")]
    FloatAdd,
    #[serde(rename = "fmin")]
    FloatMin,
    #[serde(rename = "fmax")]
    FloatMax,
}

impl Opcode {
    pub fn from_mnemonic(mnemonic: &str) -> Opcode {
        let name = ["_e32", "_e64", "_sdwa", "_gfx12"]
            .iter()
            .fold(mnemonic, |name, suffix| name.strip_suffix(suffix).unwrap_or(name));
        let of_table = match name.strip_prefix("v_dual_") {
            Some(name) => TABLE.get(format!("v_{name}").as_str()),
            None => TABLE.get(name),
        };
        of_table.cloned().or_else(|| comparison(name)).unwrap_or(Opcode::Unknown)
    }
}

/// The operations whose mnemonics have no parts.
static TABLE: LazyLock<HashMap<String, Opcode>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is a constant, which the tests read")]
    let rows: BTreeMap<String, Opcode> =
        toml::from_str(include_str!("../data/mnemonics.toml")).expect("the table of mnemonics");
    let operations = |(names, opcode): (String, Opcode)| {
        names.split(' ').map(|name| (name.to_owned(), opcode.clone())).collect::<Vec<_>>()
    };
    rows.into_iter().flat_map(operations).collect()
});

/// Returns the variant that has this name in mnemonics.
fn variant<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(name)).ok()
}

fn comparison(name: &str) -> Option<Opcode> {
    let (prefix, rest) = name.split_once('_')?;
    let (instruction, rest) = rest.strip_prefix("dual_").unwrap_or(rest).split_once('_')?;
    let (relation, kind) = rest.split_once('_')?;
    let (relation, kind) = (variant(relation)?, variant(kind)?);
    Some(match (prefix, instruction, kind) {
        ("s", "cmp" | "cmpk", CompareType::Signed | CompareType::Unsigned | CompareType::Unsigned64) => {
            Opcode::Scalar(ScalarOperation::Compare { relation, kind })
        }
        ("v", "cmp" | "cmpx", _) => {
            let writes_exec = instruction == "cmpx";
            Opcode::Vector(VectorOperation::Compare { relation, kind, writes_exec })
        }
        _ => return None,
    })
}
