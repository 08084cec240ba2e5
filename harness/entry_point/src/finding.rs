//! Findings: their kinds, and the invocations and positions involved.

use arithmetic::Instruction;
use litmus::closed_enum;
use rspirv::spirv::{GlslStd450Op, Op};
use spirv_reader::{SourcePosition, Stage};

closed_enum! {
    /// The class of a finding.
    pub enum FindingKind {
        /// Two unordered conflicting accesses.
        Race = "race",
        /// A race between lanes of one subgroup that only lockstep execution would order.
        Lockstep = "lockstep",
        /// A write happens before a read, but is not available or not visible to it.
        UnpublishedRead = "unpublished-read",
        /// Some invocations of the execution scope do not execute an instance of a control barrier.
        DivergentBarrier = "divergent-barrier",
        /// An access beyond the end of an array.
        OutOfBounds = "out-of-bounds",
        /// Something depends on an uninitialized value.
        UninitialisedRead = "uninitialised-read",
        /// An instruction without a defined result is executed.
        UndefinedBehaviour = "undefined-behaviour",
        /// An invocation never ends.
        Hang = "hang",
        /// A claim about the final contents does not hold.
        Assertion = "assertion",
    }
}

impl FindingKind {
    /// Returns true for races and for reads of unpublished writes.
    pub fn is_race(self) -> bool {
        matches!(self, FindingKind::Race | FindingKind::Lockstep | FindingKind::UnpublishedRead)
    }
}

closed_enum! {
    /// The cause of a finding, which determines its kind.
    pub enum FindingCause {
        /// No synchronization orders two accesses.
        Unordered = "unordered",
        /// Two unordered stores write one value, which is the same for all inputs.
        EqualStores = "equal-stores",
        /// Two atomics are outside each other's scope, or of different sizes.
        AtomicMismatch = "atomic-mismatch",
        /// Only lockstep execution would order two accesses.
        LockstepOrder = "lockstep-order",
        /// A write is not made available and visible to a read.
        Unpublished = "unpublished",
        /// An invocation skips a control barrier.
        MissedBarrier = "missed-barrier",
        /// An invocation does not arrive at a split barrier.
        MissedArrival = "missed-arrival",
        /// An index or offset is beyond the end of an object.
        BeyondEnd = "beyond-end",
        /// An access is beyond the assumed size of a buffer or image.
        BeyondAssumedSize = "beyond-assumed-size",
        /// An address is in no buffer.
        NoBuffer = "no-buffer",
        /// A component is outside its vector.
        BeyondVector = "beyond-vector",
        /// An uninitialized value decides something.
        UndefinedValue = "undefined-value",
        /// A stored number is computed from memory that no invocation has written.
        StoredUnwritten = "stored-unwritten",
        /// A division by zero.
        DivisionByZero = "division-by-zero",
        /// The result of an instruction is undefined for its operands.
        UndefinedResult = "undefined-result",
        /// `OpUnreachable` is executed.
        Unreachable = "unreachable",
        /// A section of a fragment shader interlock begins or ends twice.
        InterlockOrder = "interlock-order",
        /// No invocation changes the values that a loop reads.
        EndlessLoop = "endless-loop",
        /// Invocations wait for each other.
        Deadlock = "deadlock",
        /// A lane waits for another lane of its subgroup.
        SubgroupStarvation = "subgroup-starvation",
        /// A claim about the final contents does not hold.
        BrokenClaim = "broken-claim",
    }
}

impl FindingCause {
    /// Returns the class of the finding.
    pub fn kind(self) -> FindingKind {
        match self {
            FindingCause::Unordered | FindingCause::EqualStores | FindingCause::AtomicMismatch => {
                FindingKind::Race
            }
            FindingCause::LockstepOrder => FindingKind::Lockstep,
            FindingCause::Unpublished => FindingKind::UnpublishedRead,
            FindingCause::MissedBarrier | FindingCause::MissedArrival => FindingKind::DivergentBarrier,
            FindingCause::BeyondEnd
            | FindingCause::BeyondAssumedSize
            | FindingCause::NoBuffer
            | FindingCause::BeyondVector => FindingKind::OutOfBounds,
            FindingCause::UndefinedValue | FindingCause::StoredUnwritten => FindingKind::UninitialisedRead,
            FindingCause::DivisionByZero
            | FindingCause::UndefinedResult
            | FindingCause::Unreachable
            | FindingCause::InterlockOrder => FindingKind::UndefinedBehaviour,
            FindingCause::EndlessLoop | FindingCause::Deadlock | FindingCause::SubgroupStarvation => {
                FindingKind::Hang
            }
            FindingCause::BrokenClaim => FindingKind::Assertion,
        }
    }
}

/// The position of an invocation in the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvocationId {
    /// `WorkgroupId`.
    pub workgroup: [u32; 3],
    /// `LocalInvocationId`.
    pub local: [u32; 3],
    pub workgroup_index: u32,
    pub local_index: u32,
    pub stage: Stage,
}

impl LiftFinding {
    /// Returns the class of the defect.
    pub fn kind(&self) -> FindingKind {
        self.cause.kind()
    }
}

/// A source position of a finding, with the invocation that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Index of the invocation.
    pub thread: u16,
    /// Index of the source line; 0 if unknown.
    pub line: u32,
    pub place: SourcePosition,
    /// For an access, true if it writes.
    pub writes: Option<bool>,
}

/// A defect that the lifter found without a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiftFinding {
    pub cause: FindingCause,
    /// The accessed variable; empty if none is known.
    pub element: String,
    /// The description, as one sentence.
    pub message: String,
    pub at: Vec<Spot>,
}

impl std::fmt::Display for InvocationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ([a, b, c], [x, y, z]) = (self.workgroup, self.local);
        match self.stage {
            Stage::Compute | Stage::Task | Stage::Mesh => {
                write!(f, "({x},{y},{z}) of workgroup ({a},{b},{c})")
            }
            Stage::Vertex => write!(f, "vertex {a} of instance {b}"),
            Stage::Fragment => write!(f, "fragment {c} of pixel ({a},{b})"),
        }
    }
}

/// Returns cause and message of the finding, if an instruction can have an undefined result.
pub fn undefined_result(instruction: Instruction) -> Option<(FindingCause, String)> {
    use GlslStd450Op::{
        Acos, Acosh, Asin, Atan2, Atanh, FClamp, InverseSqrt, Ldexp, Log, Log2, MatrixInverse, NClamp, Pow,
        SClamp, SmoothStep, Sqrt, UClamp,
    };
    let mut cause = FindingCause::UndefinedResult;
    let (name, why) = match instruction {
        Instruction::Core(op) => {
            let why = match op {
                Op::UDiv | Op::UMod | Op::FRem | Op::FMod => {
                    cause = FindingCause::DivisionByZero;
                    "it divides by zero"
                }
                Op::SDiv | Op::SRem | Op::SMod => {
                    cause = FindingCause::DivisionByZero;
                    "it divides by zero, or the smallest number by -1"
                }
                Op::ShiftLeftLogical | Op::ShiftRightLogical | Op::ShiftRightArithmetic => {
                    "it shifts by as many bits as the number has, or more"
                }
                Op::BitFieldInsert | Op::BitFieldSExtract | Op::BitFieldUExtract => {
                    "its bit field exceeds the number"
                }
                Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => "the sum of the products does not fit",
                Op::ConvertFToU | Op::ConvertFToS => "its number is outside the range of the integer",
                Op::PtrDiff => "its pointers do not point into one array",
                Op::VectorExtractDynamic | Op::VectorInsertDynamic => {
                    let message = format!("Op{op:?} of a component outside the vector");
                    return Some((FindingCause::BeyondVector, message));
                }
                _ => return None,
            };
            (format!("Op{op:?}"), why)
        }
        Instruction::Extended(op) => {
            let why = match op {
                Asin | Acos => "its operand is not from -1 to 1",
                Acosh => "its operand is less than 1",
                Atanh => "its operand is not between -1 and 1",
                Atan2 => "both operands are 0",
                Pow => "its base is negative, or 0 with an exponent that is not positive",
                Log | Log2 | InverseSqrt => "its operand is not positive",
                Sqrt => "its operand is negative",
                FClamp | NClamp | UClamp | SClamp => "its minimum is greater than its maximum",
                SmoothStep => "its first edge is not less than the second",
                Ldexp => "the product is too large",
                MatrixInverse => "the matrix is singular",
                _ => return None,
            };
            (format!("{op:?}"), why)
        }
        Instruction::Unpack(_) | Instruction::Pack(_) => return None,
    };
    Some((cause, format!("{name} without a defined result: {why}")))
}
