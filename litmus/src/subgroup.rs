//! Subgroup operations: data exchange between the lanes of a subgroup.

use crate::test::{ArithmeticOperation, InstructionKind, Operand, RegisterId};

/// A subgroup operation (`OpGroupNonUniform…`). It does not order memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubgroupOperation {
    /// The operation.
    pub kind: SubgroupKind,
    /// The result register; `None` (`unused`) if the lane ignores the result, which may then be undefined.
    pub destination: Option<RegisterId>,
    /// The operand of the lane; an election has none.
    pub value: Option<Operand>,
    /// Identity of the shader instruction: lanes of a subgroup with equal text execute it together.
    pub id: String,
}

/// The function of a subgroup operation, on unsigned 32-bit values. Lanes are numbered within the subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubgroupKind {
    /// 1 in the lowest lane, 0 in the others.
    Elect,
    /// 1 if every operand is nonzero.
    All,
    /// 1 if some operand is nonzero.
    Any,
    /// 1 if all operands are equal.
    AllEqual,
    /// Bit k is set if the operand of lane k is nonzero.
    Ballot,
    /// The operand of this lane, in every lane.
    Broadcast(u32),
    /// The operand of the lowest lane.
    BroadcastFirst,
    /// The operand of a lane that each lane chooses for itself.
    Shuffle(u32),
    /// The operand of the lane whose index is this lane's XOR the mask.
    ShuffleXor(u32),
    /// The operand of the lane with an index lower by this delta.
    ShuffleUp(u32),
    /// The operand of the lane with an index higher by this delta.
    ShuffleDown(u32),
    /// The operand of the lane with an index higher by `delta`, wrapping around within a cluster.
    Rotate {
        /// The distance.
        delta: u32,
        /// Cluster size, a power of two.
        cluster: u32,
    },
    /// The operand of this lane of the quad.
    QuadBroadcast(u32),
    /// The operand of the neighbour in the quad.
    QuadSwap(QuadDirection),
    /// A reduction or scan.
    Arithmetic(SubgroupSpan, ArithmeticOperation),
}

/// The direction of the neighbour in a quad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuadDirection {
    /// Left or right.
    Horizontal,
    /// Above or below.
    Vertical,
    /// Diagonally opposite.
    Diagonal,
}

/// The lanes over which a reduction or scan is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubgroupSpan {
    /// All lanes.
    Reduce,
    /// This lane and those before it.
    Inclusive,
    /// The lanes before this one.
    Exclusive,
}

/// The binary operations of scans and reductions.
pub const SUBGROUP_ARITHMETIC: [ArithmeticOperation; 6] = [
    ArithmeticOperation::Add,
    ArithmeticOperation::Minimum,
    ArithmeticOperation::Maximum,
    ArithmeticOperation::And,
    ArithmeticOperation::Or,
    ArithmeticOperation::Xor,
];

impl SubgroupKind {
    /// Returns the word after `sg.`.
    pub fn keyword(self) -> &'static str {
        match self {
            SubgroupKind::Elect => "elect",
            SubgroupKind::All => "all",
            SubgroupKind::Any => "any",
            SubgroupKind::AllEqual => "all_equal",
            SubgroupKind::Ballot => "ballot",
            SubgroupKind::Broadcast(_) => "broadcast",
            SubgroupKind::BroadcastFirst => "broadcast_first",
            SubgroupKind::Shuffle(_) => "shuffle",
            SubgroupKind::ShuffleXor(_) => "shuffle_xor",
            SubgroupKind::ShuffleUp(_) => "shuffle_up",
            SubgroupKind::ShuffleDown(_) => "shuffle_down",
            SubgroupKind::Rotate { .. } => "rotate",
            SubgroupKind::QuadBroadcast(_) => "quad_broadcast",
            SubgroupKind::QuadSwap(QuadDirection::Horizontal) => "quad_swap_horizontal",
            SubgroupKind::QuadSwap(QuadDirection::Vertical) => "quad_swap_vertical",
            SubgroupKind::QuadSwap(QuadDirection::Diagonal) => "quad_swap_diagonal",
            SubgroupKind::Arithmetic(SubgroupSpan::Reduce, _) => "reduce",
            SubgroupKind::Arithmetic(SubgroupSpan::Inclusive, _) => "inclusive",
            SubgroupKind::Arithmetic(SubgroupSpan::Exclusive, _) => "exclusive",
        }
    }

    /// Returns the constant arguments of the text, in order.
    pub fn constant_arguments(self) -> Vec<u32> {
        match self {
            SubgroupKind::Broadcast(number)
            | SubgroupKind::Shuffle(number)
            | SubgroupKind::ShuffleXor(number)
            | SubgroupKind::ShuffleUp(number)
            | SubgroupKind::ShuffleDown(number)
            | SubgroupKind::QuadBroadcast(number) => vec![number],
            SubgroupKind::Rotate { delta, cluster } => vec![delta, cluster],
            SubgroupKind::Elect
            | SubgroupKind::All
            | SubgroupKind::Any
            | SubgroupKind::AllEqual
            | SubgroupKind::Ballot
            | SubgroupKind::BroadcastFirst
            | SubgroupKind::QuadSwap(_)
            | SubgroupKind::Arithmetic(..) => Vec::new(),
        }
    }

    /// Returns true if both can be one instruction of a shader: lanes may differ only in the source of a
    /// shuffle.
    pub fn can_be_one_instruction(self, other: SubgroupKind) -> bool {
        self == other || matches!((self, other), (SubgroupKind::Shuffle(_), SubgroupKind::Shuffle(_)))
    }

    /// Returns the lane whose operand `lane` receives, if the arguments determine a single one.
    ///
    /// `u32::MAX` if no such lane exists.
    pub fn source_lane(self, lane: u32) -> Option<u32> {
        match self {
            SubgroupKind::Broadcast(source) | SubgroupKind::Shuffle(source) => Some(source),
            SubgroupKind::ShuffleXor(mask) => Some(lane ^ mask),
            SubgroupKind::ShuffleUp(delta) => Some(lane.checked_sub(delta).unwrap_or(u32::MAX)),
            SubgroupKind::ShuffleDown(delta) => Some(lane.saturating_add(delta)),
            SubgroupKind::Rotate { delta, cluster } => {
                let cluster_mask = cluster.wrapping_sub(1);
                Some((lane & !cluster_mask) | (lane.wrapping_add(delta) & cluster_mask))
            }
            SubgroupKind::QuadBroadcast(place) if place > 3 => Some(u32::MAX),
            SubgroupKind::QuadBroadcast(place) => Some((lane & !3) | place),
            SubgroupKind::QuadSwap(direction) => Some(
                lane ^ match direction {
                    QuadDirection::Horizontal => 1,
                    QuadDirection::Vertical => 2,
                    QuadDirection::Diagonal => 3,
                },
            ),
            SubgroupKind::Elect
            | SubgroupKind::All
            | SubgroupKind::Any
            | SubgroupKind::AllEqual
            | SubgroupKind::Ballot
            | SubgroupKind::BroadcastFirst
            | SubgroupKind::Arithmetic(..) => None,
        }
    }

    /// Returns the result in `lane`, given the operands of the tangle's lanes in increasing lane order.
    ///
    /// The result is an expression of 32-bit operations; `None` if it is undefined. An expression contains
    /// only the operands that the result depends on: an election has none, a broadcast one.
    pub fn result_in_lane<E: Clone>(
        self,
        lane: u32,
        operands: &[(u32, E)],
        constant: &impl Fn(u32) -> E,
        compute: &impl Fn(ArithmeticOperation, E, E) -> E,
    ) -> Option<E> {
        let (first_lane, first) = operands.first()?;
        if let Some(source) = self.source_lane(lane) {
            return operands.iter().find(|(number, _)| *number == source).map(|(_, value)| value.clone());
        }
        let to_bit = |value: &E| compute(ArithmeticOperation::Minimum, value.clone(), constant(1));
        let fold = |operation, values: &mut dyn Iterator<Item = E>| {
            values.reduce(|all, value| compute(operation, all, value))
        };
        match self {
            SubgroupKind::Elect => Some(constant(u32::from(lane == *first_lane))),
            SubgroupKind::BroadcastFirst => Some(first.clone()),
            SubgroupKind::All => {
                fold(ArithmeticOperation::And, &mut operands.iter().map(|(_, value)| to_bit(value)))
            }
            SubgroupKind::Any => {
                fold(ArithmeticOperation::Or, &mut operands.iter().map(|(_, value)| to_bit(value)))
            }
            SubgroupKind::Ballot => {
                let bit = |(number, value): &(u32, E)| {
                    let weight = constant(1u32.checked_shl(*number).unwrap_or(0));
                    compute(ArithmeticOperation::Multiply, to_bit(value), weight)
                };
                fold(ArithmeticOperation::Or, &mut operands.iter().map(bit))
            }
            SubgroupKind::AllEqual => {
                let others = operands.get(1..).unwrap_or_default();
                let differs =
                    |(_, value): &(u32, E)| compute(ArithmeticOperation::Xor, value.clone(), first.clone());
                Some(match fold(ArithmeticOperation::Or, &mut others.iter().map(differs)) {
                    Some(bits) => compute(ArithmeticOperation::Xor, to_bit(&bits), constant(1)),
                    None => constant(1),
                })
            }
            SubgroupKind::Arithmetic(span, operation) => {
                let contributes = |number: u32| match span {
                    SubgroupSpan::Reduce => true,
                    SubgroupSpan::Inclusive => number <= lane,
                    SubgroupSpan::Exclusive => number < lane,
                };
                let mut values = operands
                    .iter()
                    .filter(|(number, _)| contributes(*number))
                    .map(|(_, value)| value.clone());
                let identity = match operation {
                    ArithmeticOperation::Minimum | ArithmeticOperation::And => u32::MAX,
                    ArithmeticOperation::Multiply => 1,
                    ArithmeticOperation::Add
                    | ArithmeticOperation::Subtract
                    | ArithmeticOperation::Divide
                    | ArithmeticOperation::Or
                    | ArithmeticOperation::Xor
                    | ArithmeticOperation::Maximum => 0,
                };
                Some(fold(operation, &mut values).unwrap_or_else(|| constant(identity)))
            }
            _ => None,
        }
    }
}

impl InstructionKind {
    /// Returns the subgroup operation, if the instruction is one.
    pub fn subgroup_operation(&self) -> Option<&SubgroupOperation> {
        if let InstructionKind::Subgroup(operation) = self { Some(operation) } else { None }
    }
}
