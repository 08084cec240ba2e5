//! Mnemonics of all generations with their operations.
//!
//! Long because it is a table with a line for each mnemonic.

use crate::alu::AluOperation;

/// The operation of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    Wait(&'static [WaitCounter]),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SccEffect {
    Untouched,
    /// Set if the result is nonzero.
    NotZero,
    /// Set if the first operand is the result.
    FirstSelected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareRelation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The type of compared values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareType {
    Unsigned,
    Signed,
    Float,
    Unsigned64,
    Signed64,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInstruction {
    pub path: MemoryPath,
    pub action: AccessAction,
    /// Bytes of one element.
    pub bytes: u8,
    /// `ds_read2_b32` and similar: two elements, whose offsets are in units of this many elements.
    pub pair_stride: Option<u8>,
    /// True if the upper half of the register is preserved, or not stored.
    pub low_half: bool,
    /// True if the upper half of the register is stored.
    pub high_half: bool,
}

impl MemoryInstruction {
    fn with_defaults(path: MemoryPath, action: AccessAction, bytes: u8) -> MemoryInstruction {
        MemoryInstruction { path, action, bytes, pair_stride: None, low_half: false, high_half: false }
    }

    /// Returns true unless it is a plain scalar load.
    pub fn is_data(&self) -> bool {
        !matches!(self.path, MemoryPath::Scalar)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AtomicOpcode {
    Swap,
    CompareSwap,
    Add,
    Sub,
    And,
    Or,
    Xor,
    MinSigned,
    MinUnsigned,
    MaxSigned,
    MaxUnsigned,
    FloatAdd,
    FloatMin,
    FloatMax,
}

impl Opcode {
    pub fn from_mnemonic(mnemonic: &str) -> Opcode {
        let name = ["_e32", "_e64", "_sdwa", "_gfx12"]
            .iter()
            .fold(mnemonic, |name, suffix| name.strip_suffix(suffix).unwrap_or(name));
        control_opcode(name)
            .or_else(|| scalar_operation(name).map(Opcode::Scalar))
            .or_else(|| vector_operation(name).map(Opcode::Vector))
            .or_else(|| memory_instruction(name).map(Opcode::Memory))
            .unwrap_or(Opcode::Unknown)
    }
}

fn control_opcode(name: &str) -> Option<Opcode> {
    Some(match name {
        "s_nop"
        | "s_clause"
        | "s_delay_alu"
        | "s_inst_prefetch"
        | "s_set_inst_prefetch_distance"
        | "s_sendmsg"
        | "s_code_end"
        | "s_setprio"
        | "s_sleep"
        | "s_version"
        | "v_nop" => Opcode::NoEffect,
        "s_waitcnt_depctr" | "s_wait_alu" => Opcode::DependencyWait,
        "s_endpgm" => Opcode::End,
        "s_branch" => Opcode::Branch(JumpCondition::Always),
        "s_cbranch_scc0" => Opcode::Branch(JumpCondition::SccZero),
        "s_cbranch_scc1" => Opcode::Branch(JumpCondition::SccOne),
        "s_cbranch_vccz" => Opcode::Branch(JumpCondition::VccZero),
        "s_cbranch_vccnz" => Opcode::Branch(JumpCondition::VccNotZero),
        "s_cbranch_execz" => Opcode::Branch(JumpCondition::ExecZero),
        "s_cbranch_execnz" => Opcode::Branch(JumpCondition::ExecNotZero),
        "s_waitcnt" => Opcode::Waitcnt,
        "s_waitcnt_vmcnt" | "s_wait_loadcnt" => Opcode::Wait(&[WaitCounter::Vector]),
        "s_waitcnt_vscnt" | "s_wait_storecnt" => Opcode::Wait(&[WaitCounter::Store]),
        "s_waitcnt_lgkmcnt" | "s_wait_dscnt" => Opcode::Wait(&[WaitCounter::Lds]),
        "s_wait_kmcnt" => Opcode::Wait(&[WaitCounter::Scalar]),
        "s_wait_loadcnt_dscnt" => Opcode::Wait(&[WaitCounter::Vector, WaitCounter::Lds]),
        "s_wait_storecnt_dscnt" => Opcode::Wait(&[WaitCounter::Store, WaitCounter::Lds]),
        "s_wait_expcnt" | "s_waitcnt_expcnt" | "s_wait_samplecnt" | "s_wait_bvhcnt" => {
            Opcode::Wait(&[WaitCounter::Other])
        }
        "s_barrier" => Opcode::Barrier,
        "s_barrier_signal" => Opcode::BarrierSignal,
        "s_barrier_wait" => Opcode::BarrierWait,
        "buffer_wbinvl1" | "buffer_wbinvl1_vol" | "buffer_gl0_inv" => {
            Opcode::Cache(CacheInstruction::InvalidateVector)
        }
        "buffer_gl1_inv" => Opcode::Cache(CacheInstruction::InvalidateArray),
        "global_inv" => Opcode::Cache(CacheInstruction::InvalidateByScope),
        "global_wb" => Opcode::Cache(CacheInstruction::WriteBack),
        "s_dcache_inv" => Opcode::Cache(CacheInstruction::InvalidateScalar),
        "s_dcache_wb" => Opcode::Cache(CacheInstruction::WriteBackScalar),
        _ => return None,
    })
}

fn compare_relation(name: &str) -> Option<CompareRelation> {
    Some(match name {
        "eq" => CompareRelation::Equal,
        "ne" | "lg" | "neq" => CompareRelation::NotEqual,
        "lt" => CompareRelation::Less,
        "le" => CompareRelation::LessOrEqual,
        "gt" => CompareRelation::Greater,
        "ge" => CompareRelation::GreaterOrEqual,
        _ => return None,
    })
}

fn scalar_operation(name: &str) -> Option<ScalarOperation> {
    let name = name.strip_prefix("s_")?;
    if let Some(rest) = name.strip_prefix("cmp_").or_else(|| name.strip_prefix("cmpk_")) {
        let (relation, ty) = rest.split_once('_')?;
        let kind = match ty {
            "i32" => CompareType::Signed,
            "u32" => CompareType::Unsigned,
            "u64" => CompareType::Unsigned64,
            _ => return None,
        };
        return Some(ScalarOperation::Compare { relation: compare_relation(relation)?, kind });
    }
    if let Some((operation, bits)) = name.rsplit_once("_saveexec_b") {
        let alu = match operation {
            "and" => AluOperation::And,
            "or" => AluOperation::Or,
            "xor" => AluOperation::Xor,
            "nand" => AluOperation::Nand,
            "nor" => AluOperation::Nor,
            // s_andn2_saveexec: the operand and not exec.
            "andn2" | "and_not1" => AluOperation::AndNot,
            "orn2" | "or_not1" => AluOperation::OrNot,
            _ => return None,
        };
        return Some(ScalarOperation::SaveExec { alu, wide: parse_width_suffix(bits)? });
    }
    if let Some((operation, bits)) = name.rsplit_once("_b") {
        let alu = match operation {
            "mov" => Some(AluOperation::Mov),
            "not" => Some(AluOperation::Not),
            "and" => Some(AluOperation::And),
            "or" => Some(AluOperation::Or),
            "xor" => Some(AluOperation::Xor),
            "nand" => Some(AluOperation::Nand),
            "nor" => Some(AluOperation::Nor),
            "xnor" => Some(AluOperation::Xnor),
            "andn2" | "and_not1" => Some(AluOperation::AndNot),
            "orn2" | "or_not1" => Some(AluOperation::OrNot),
            _ => None,
        };
        if let Some(alu) = alu {
            return Some(ScalarOperation::Bitwise {
                alu,
                wide: parse_width_suffix(bits)?,
                sets_scc: alu != AluOperation::Mov,
            });
        }
    }
    let word = |alu, flag| Some(ScalarOperation::Word { alu, scc_effect: flag });
    let sum = |subtract, carry_in, signed| Some(ScalarOperation::Sum { subtract, carry_in, signed });
    match name {
        "movk_i32" => Some(ScalarOperation::Constant { alu: AluOperation::Mov, accumulates: false }),
        "addk_i32" | "addk_co_i32" => {
            Some(ScalarOperation::Constant { alu: AluOperation::Add, accumulates: true })
        }
        "mulk_i32" => Some(ScalarOperation::Constant { alu: AluOperation::Mul, accumulates: true }),
        "add_u32" | "add_co_u32" => sum(false, false, false),
        "add_i32" | "add_co_i32" => sum(false, false, true),
        "addc_u32" | "add_co_ci_u32" => sum(false, true, false),
        "sub_u32" | "sub_co_u32" => sum(true, false, false),
        "sub_i32" | "sub_co_i32" => sum(true, false, true),
        "subb_u32" | "sub_co_ci_u32" => sum(true, true, false),
        "mul_i32" => word(AluOperation::Mul, SccEffect::Untouched),
        "mul_hi_u32" => word(AluOperation::MulHigh, SccEffect::Untouched),
        "min_u32" => word(AluOperation::MinUnsigned, SccEffect::FirstSelected),
        "max_u32" => word(AluOperation::MaxUnsigned, SccEffect::FirstSelected),
        "min_i32" => word(AluOperation::MinSigned, SccEffect::FirstSelected),
        "max_i32" => word(AluOperation::MaxSigned, SccEffect::FirstSelected),
        "lshl_b32" => word(AluOperation::ShiftLeft, SccEffect::NotZero),
        "lshr_b32" => word(AluOperation::ShiftRight, SccEffect::NotZero),
        "ashr_i32" => word(AluOperation::ShiftRightSigned, SccEffect::NotZero),
        "bfe_u32" => word(AluOperation::ExtractUnsignedPacked, SccEffect::NotZero),
        "bfe_i32" => word(AluOperation::ExtractSignedPacked, SccEffect::NotZero),
        "bfm_b32" => word(AluOperation::Mask, SccEffect::Untouched),
        "pack_ll_b32_b16" => word(AluOperation::PackLow, SccEffect::Untouched),
        "sext_i32_i8" => word(AluOperation::SignByte, SccEffect::Untouched),
        "sext_i32_i16" => word(AluOperation::SignHalf, SccEffect::Untouched),
        "bfm_b64" => Some(ScalarOperation::Mask64),
        "lshl_b64" => Some(ScalarOperation::Shift64 { left: true }),
        "lshr_b64" => Some(ScalarOperation::Shift64 { left: false }),
        "cselect_b32" => Some(ScalarOperation::Select { wide: false }),
        "cselect_b64" => Some(ScalarOperation::Select { wide: true }),
        "bitcmp0_b32" => Some(ScalarOperation::TestBit { set: false }),
        "bitcmp1_b32" => Some(ScalarOperation::TestBit { set: true }),
        _ => None,
    }
}

fn parse_width_suffix(bits: &str) -> Option<bool> {
    match bits {
        "32" => Some(false),
        "64" => Some(true),
        _ => None,
    }
}

fn vector_operation(name: &str) -> Option<VectorOperation> {
    let name = name.strip_prefix("v_")?;
    let name = name.strip_prefix("dual_").unwrap_or(name);
    for (prefix, execute) in [("cmpx_", true), ("cmp_", false)] {
        if let Some(rest) = name.strip_prefix(prefix) {
            let (relation, ty) = rest.split_once('_')?;
            let kind = match ty {
                "i32" => CompareType::Signed,
                "u32" => CompareType::Unsigned,
                "f32" => CompareType::Float,
                "u64" => CompareType::Unsigned64,
                "i64" => CompareType::Signed64,
                _ => return None,
            };
            return Some(VectorOperation::Compare {
                relation: compare_relation(relation)?,
                kind,
                writes_exec: execute,
            });
        }
    }
    let word = |alu| Some(VectorOperation::Word { alu, reverse: false });
    let reverse = |alu| Some(VectorOperation::Word { alu, reverse: true });
    let sum = |subtract, reverse, carry_out, carry_in| {
        Some(VectorOperation::Sum { subtract, reverse, carry_out, carry_in })
    };
    match name {
        "mov_b32" => word(AluOperation::Mov),
        // From GFX11 on, a half register. The other half is preserved, but no 16-bit store uses it.
        "mov_b16" => word(AluOperation::LowHalf),
        "not_b32" => word(AluOperation::Not),
        "and_b32" => word(AluOperation::And),
        "or_b32" => word(AluOperation::Or),
        "xor_b32" => word(AluOperation::Xor),
        "xnor_b32" => word(AluOperation::Xnor),
        "lshlrev_b32" => reverse(AluOperation::ShiftLeft),
        "lshrrev_b32" => reverse(AluOperation::ShiftRight),
        "ashrrev_i32" => reverse(AluOperation::ShiftRightSigned),
        "lshl_b32" => word(AluOperation::ShiftLeft),
        "lshr_b32" => word(AluOperation::ShiftRight),
        "ashr_i32" => word(AluOperation::ShiftRightSigned),
        "mul_lo_u32" | "mul_lo_i32" => word(AluOperation::Mul),
        "mul_hi_u32" => word(AluOperation::MulHigh),
        "mul_u32_u24" => word(AluOperation::Mul24),
        "mad_u32_u24" => word(AluOperation::MulAdd24),
        "min_u32" => word(AluOperation::MinUnsigned),
        "max_u32" => word(AluOperation::MaxUnsigned),
        "min_i32" => word(AluOperation::MinSigned),
        "max_i32" => word(AluOperation::MaxSigned),
        "bfe_u32" => word(AluOperation::ExtractUnsigned),
        "bfe_i32" => word(AluOperation::ExtractSigned),
        "bfi_b32" => word(AluOperation::Insert),
        "bfm_b32" => word(AluOperation::Mask),
        "add3_u32" => word(AluOperation::Add3),
        "or3_b32" => word(AluOperation::Or3),
        "and_or_b32" => word(AluOperation::AndOr),
        "add_lshl_u32" => word(AluOperation::AddShift),
        "lshl_add_u32" => word(AluOperation::ShiftAdd),
        "lshl_or_b32" => word(AluOperation::ShiftOr),
        "xad_u32" => word(AluOperation::XorAdd),
        "alignbit_b32" => word(AluOperation::AlignBit),
        "perm_b32" => word(AluOperation::Permute),
        "trunc_f32" => word(AluOperation::Truncate),
        "cvt_f32_i32" => word(AluOperation::FloatFromSigned),
        "cvt_f32_u32" => word(AluOperation::FloatFromUnsigned),
        "cvt_i32_f32" => word(AluOperation::SignedFromFloat),
        "cvt_u32_f32" => word(AluOperation::UnsignedFromFloat),
        "cvt_u32_u16" => word(AluOperation::LowHalf),
        "cvt_i32_i16" => word(AluOperation::SignHalf),
        "add_f32" => word(AluOperation::FloatAdd),
        "min_f32" | "min_num_f32" => word(AluOperation::FloatMin),
        "max_f32" | "max_num_f32" => word(AluOperation::FloatMax),
        "add_u32" | "add_nc_u32" => sum(false, false, false, false),
        "sub_u32" | "sub_nc_u32" => sum(true, false, false, false),
        "subrev_u32" | "subrev_nc_u32" => sum(true, true, false, false),
        "add_i32" | "add_co_u32" => sum(false, false, true, false),
        "sub_i32" | "sub_co_u32" => sum(true, false, true, false),
        "subrev_i32" | "subrev_co_u32" => sum(true, true, true, false),
        "addc_u32" | "addc_co_u32" | "add_co_ci_u32" => sum(false, false, true, true),
        "subb_u32" | "subb_co_u32" | "sub_co_ci_u32" => sum(true, false, true, true),
        "subbrev_u32" | "subbrev_co_u32" | "subrev_co_ci_u32" => sum(true, true, true, true),
        "lshlrev_b64" => Some(VectorOperation::Shift64 { left: true, reverse: true }),
        "lshl_b64" => Some(VectorOperation::Shift64 { left: true, reverse: false }),
        "lshr_b64" => Some(VectorOperation::Shift64 { left: false, reverse: false }),
        "lshrrev_b64" => Some(VectorOperation::Shift64 { left: false, reverse: true }),
        "cndmask_b32" => Some(VectorOperation::Select),
        "mbcnt_lo_u32_b32" => Some(VectorOperation::MaskedBitCount { high: false }),
        "mbcnt_hi_u32_b32" => Some(VectorOperation::MaskedBitCount { high: true }),
        "readfirstlane_b32" => Some(VectorOperation::ReadFirstLane),
        _ => None,
    }
}

fn memory_instruction(name: &str) -> Option<MemoryInstruction> {
    let build = MemoryInstruction::with_defaults;
    let plain = |path, action, bytes| Some(build(path, action, bytes));
    if let Some(rest) = name.strip_prefix("ds_") {
        return lds_instruction(rest);
    }
    for (prefix, path) in [("s_buffer_load_", MemoryPath::ScalarBuffer), ("s_load_", MemoryPath::Scalar)] {
        if let Some(size) = name.strip_prefix(prefix) {
            return plain(path, AccessAction::Load { signed: false }, size_in_bytes(size)?);
        }
    }
    let (path, rest) = [
        ("buffer_", MemoryPath::Buffer),
        ("global_", MemoryPath::Global),
        ("flat_", MemoryPath::Flat),
        ("image_", MemoryPath::Image),
    ]
    .into_iter()
    .find_map(|(prefix, path)| name.strip_prefix(prefix).map(|rest| (path, rest)))?;
    if let Some(operation) = rest.strip_prefix("atomic_") {
        let (operation, bytes) = atomic_operation(operation)?;
        return plain(path, AccessAction::Atomic(operation), bytes);
    }
    if path == MemoryPath::Image {
        return match rest {
            "load" => plain(path, AccessAction::Load { signed: false }, 4),
            "store" => plain(path, AccessAction::Store, 4),
            _ => None,
        };
    }
    let (action, size) = match (rest.strip_prefix("load_"), rest.strip_prefix("store_")) {
        (Some(size), _) => (AccessAction::Load { signed: false }, size),
        (_, Some(size)) => (AccessAction::Store, size),
        _ => return None,
    };
    let load = matches!(action, AccessAction::Load { .. });
    match size {
        "format_x" if path == MemoryPath::Buffer => plain(MemoryPath::Texel, action, 4),
        "format_d16_x" | "d16_format_x" if path == MemoryPath::Buffer && !load => {
            Some(MemoryInstruction { low_half: true, ..build(MemoryPath::Texel, action, 4) })
        }
        "ubyte" | "u8" if load => plain(path, action, 1),
        "sbyte" | "i8" if load => plain(path, AccessAction::Load { signed: true }, 1),
        "ushort" | "u16" if load => plain(path, action, 2),
        "sshort" | "i16" if load => plain(path, AccessAction::Load { signed: true }, 2),
        "byte" | "b8" if !load => plain(path, action, 1),
        "short" | "b16" if !load => plain(path, action, 2),
        "byte_d16_hi" | "d16_hi_b8" if !load => {
            Some(MemoryInstruction { high_half: true, ..build(path, action, 1) })
        }
        "short_d16_hi" | "d16_hi_b16" if !load => {
            Some(MemoryInstruction { high_half: true, ..build(path, action, 2) })
        }
        _ => plain(path, action, size_in_bytes(size)?),
    }
}

/// Returns the size in bytes of `dwordx2`, `b64` and similar.
fn size_in_bytes(size: &str) -> Option<u8> {
    Some(match size {
        "dword" | "b32" => 4,
        "dwordx2" | "b64" => 8,
        "dwordx3" | "b96" => 12,
        "dwordx4" | "b128" => 16,
        "dwordx8" | "b256" => 32,
        "dwordx16" | "b512" => 64,
        _ => return None,
    })
}

fn atomic_operation(name: &str) -> Option<(AtomicOpcode, u8)> {
    use AtomicOpcode as A;
    let (name, wide) = match name.strip_suffix("_x2") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let mut bytes = if wide { 8 } else { 4 };
    let mut stem = name;
    for (suffix, size) in [
        ("_u32", 4),
        ("_i32", 4),
        ("_b32", 4),
        ("_u64", 8),
        ("_i64", 8),
        ("_b64", 8),
        ("_uint", 4),
        ("_int", 4),
    ] {
        if let Some(rest) = name.strip_suffix(suffix) {
            (stem, bytes) = (rest, size);
        }
    }
    let unsigned = name.ends_with("_u32") || name.ends_with("_u64") || name.ends_with("_uint");
    let operation = match stem {
        "swap" => A::Swap,
        "cmpswap" => A::CompareSwap,
        "add" => A::Add,
        "sub" => A::Sub,
        "and" => A::And,
        "or" => A::Or,
        "xor" => A::Xor,
        "smin" => A::MinSigned,
        "umin" => A::MinUnsigned,
        "smax" => A::MaxSigned,
        "umax" => A::MaxUnsigned,
        "min" if unsigned => A::MinUnsigned,
        "max" if unsigned => A::MaxUnsigned,
        "min" => A::MinSigned,
        "max" => A::MaxSigned,
        "add_f32" => A::FloatAdd,
        "min_f32" | "fmin" | "min_num_f32" => A::FloatMin,
        "max_f32" | "fmax" | "max_num_f32" => A::FloatMax,
        _ => return None,
    };
    Some((operation, bytes))
}

fn lds_instruction(name: &str) -> Option<MemoryInstruction> {
    use AtomicOpcode as A;
    let build = |action, bytes, pair| {
        Some(MemoryInstruction {
            pair_stride: pair,
            ..MemoryInstruction::with_defaults(MemoryPath::Lds, action, bytes)
        })
    };
    let load = AccessAction::Load { signed: false };
    match name {
        "read_b32" | "load_b32" => build(load, 4, None),
        "read_b64" | "load_b64" => build(load, 8, None),
        "read_b96" | "load_b96" => build(load, 12, None),
        "read_b128" | "load_b128" => build(load, 16, None),
        "read_u8" | "load_u8" => build(load, 1, None),
        "read_u16" | "load_u16" => build(load, 2, None),
        "read_i8" | "load_i8" => build(AccessAction::Load { signed: true }, 1, None),
        "read_i16" | "load_i16" => build(AccessAction::Load { signed: true }, 2, None),
        "write_b8" | "store_b8" => build(AccessAction::Store, 1, None),
        "write_b16" | "store_b16" => build(AccessAction::Store, 2, None),
        "write_b32" | "store_b32" => build(AccessAction::Store, 4, None),
        "write_b64" | "store_b64" => build(AccessAction::Store, 8, None),
        "write_b128" | "store_b128" => build(AccessAction::Store, 16, None),
        "read2_b32" | "load_2addr_b32" => build(load, 4, Some(1)),
        "read2_b64" | "load_2addr_b64" => build(load, 8, Some(1)),
        "read2st64_b32" | "load_2addr_stride64_b32" => build(load, 4, Some(64)),
        "read2st64_b64" | "load_2addr_stride64_b64" => build(load, 8, Some(64)),
        "write2_b32" | "store_2addr_b32" => build(AccessAction::Store, 4, Some(1)),
        "write2_b64" | "store_2addr_b64" => build(AccessAction::Store, 8, Some(1)),
        "write2st64_b32" | "store_2addr_stride64_b32" => build(AccessAction::Store, 4, Some(64)),
        "write2st64_b64" | "store_2addr_stride64_b64" => build(AccessAction::Store, 8, Some(64)),
        _ => {
            let (stem, ty) = name.rsplit_once('_')?;
            let bytes = match ty {
                "u32" | "i32" | "b32" => 4,
                "u64" | "i64" | "b64" => 8,
                _ => return None,
            };
            let (stem, is_returning) = match stem.split_once("_rtn") {
                Some((stem, "")) => (stem, true),
                _ => (stem, false),
            };
            let signed = ty.starts_with('i');
            let operation = match stem {
                "add" => A::Add,
                "sub" => A::Sub,
                "and" => A::And,
                "or" => A::Or,
                "xor" => A::Xor,
                "min" if signed => A::MinSigned,
                "max" if signed => A::MaxSigned,
                "min" => A::MinUnsigned,
                "max" => A::MaxUnsigned,
                "wrxchg" | "storexchg" => A::Swap,
                // Only the returning form has the operand order that this reader expects.
                "cmpst" | "cmpstore" if is_returning => A::CompareSwap,
                _ => return None,
            };
            build(AccessAction::Atomic(operation), bytes, None)
        }
    }
}
