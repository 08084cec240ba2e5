//! Subgroup operations: values that the lanes of a subgroup hand to one another.

use crate::test::{ArithmeticOperation, InstructionKind, Operand, RegisterId};

/// A subgroup operation (`OpGroupNonUniform…`): it takes part in no order of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubgroupOperation {
    /// What it computes.
    pub kind: SubgroupKind,
    /// The register that is assigned; `None` (`unused`) where the lane does not look at the result, which may be undefined.
    pub destination: Option<RegisterId>,
    /// What the lane brings; an election has nothing.
    pub value: Option<Operand>,
    /// Which instruction of the shader it is: the lanes of a subgroup with the same text execute it together.
    pub id: String,
}

/// What a subgroup operation computes, of values of 32 bits without a sign. Lanes are numbered within the subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubgroupKind {
    /// 1 in the lowest lane, 0 in the others.
    Elect,
    /// Whether no lane brings 0.
    All,
    /// Whether some lane brings something else than 0.
    Any,
    /// Whether all lanes bring the same.
    AllEqual,
    /// Bit k: lane k brings something else than 0.
    Ballot,
    /// What this lane brings, in every lane.
    Broadcast(u32),
    /// What the lowest lane brings.
    BroadcastFirst,
    /// What a lane brings that each lane chooses for itself.
    Shuffle(u32),
    /// What the lane brings whose number differs in these bits.
    ShuffleXor(u32),
    /// What the lane so far below brings.
    ShuffleUp(u32),
    /// What the lane so far above brings.
    ShuffleDown(u32),
    /// What the lane so far above brings, counted round within a cluster.
    Rotate {
        /// How far.
        delta: u32,
        /// Lanes of a cluster, a power of two.
        cluster: u32,
    },
    /// What this lane of the quad brings.
    QuadBroadcast(u32),
    /// What the neighbour in the quad brings.
    QuadSwap(QuadDirection),
    /// A sum and the like.
    Arithmetic(SubgroupSpan, ArithmeticOperation),
}

/// Where the neighbour in a quad is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuadDirection {
    /// Beside it.
    Horizontal,
    /// Above or below.
    Vertical,
    /// Across.
    Diagonal,
}

/// Over which lanes something is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubgroupSpan {
    /// All.
    Reduce,
    /// Those up to the lane.
    Inclusive,
    /// Those before the lane.
    Exclusive,
}

/// The operations that scans and reductions are made of.
pub const SUBGROUP_ARITHMETIC: [ArithmeticOperation; 6] = [
    ArithmeticOperation::Add,
    ArithmeticOperation::Minimum,
    ArithmeticOperation::Maximum,
    ArithmeticOperation::And,
    ArithmeticOperation::Or,
    ArithmeticOperation::Xor,
];

impl SubgroupKind {
    /// The word after `sg.`.
    pub fn word(self) -> &'static str {
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

    /// The numbers that the text gives it, in their order.
    pub fn numbers(self) -> Vec<u32> {
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

    /// Whether it is the same instruction of a shader: lanes may differ in what they shuffle from alone.
    pub fn is_one_instruction(self, other: SubgroupKind) -> bool {
        self == other || matches!((self, other), (SubgroupKind::Shuffle(_), SubgroupKind::Shuffle(_)))
    }

    /// The lane that `lane` gets the value of, where it is a single one that the numbers tell; `u32::MAX` where there is
    /// none such.
    pub fn source(self, lane: u32) -> Option<u32> {
        match self {
            SubgroupKind::Broadcast(source) | SubgroupKind::Shuffle(source) => Some(source),
            SubgroupKind::ShuffleXor(mask) => Some(lane ^ mask),
            SubgroupKind::ShuffleUp(delta) => Some(lane.checked_sub(delta).unwrap_or(u32::MAX)),
            SubgroupKind::ShuffleDown(delta) => Some(lane.saturating_add(delta)),
            SubgroupKind::Rotate { delta, cluster } => {
                let within = cluster.wrapping_sub(1);
                Some((lane & !within) | (lane.wrapping_add(delta) & within))
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

    /// What the operation gives `lane`, of what the lanes of its tangle bring, by number from the lowest: an expression of
    /// operations on numbers of 32 bits. `None` where the result is undefined.
    ///
    /// An expression has the operands alone that the result depends on: an election has none, a broadcast one.
    pub fn result<E: Clone>(
        self,
        lane: u32,
        operands: &[(u32, E)],
        constant: &impl Fn(u32) -> E,
        compute: &impl Fn(ArithmeticOperation, E, E) -> E,
    ) -> Option<E> {
        let (first_lane, first) = operands.first()?;
        if let Some(source) = self.source(lane) {
            return operands.iter().find(|(number, _)| *number == source).map(|(_, value)| value.clone());
        }
        let truth = |value: &E| compute(ArithmeticOperation::Minimum, value.clone(), constant(1));
        let fold = |operation, values: &mut dyn Iterator<Item = E>| {
            values.reduce(|all, value| compute(operation, all, value))
        };
        match self {
            SubgroupKind::Elect => Some(constant(u32::from(lane == *first_lane))),
            SubgroupKind::BroadcastFirst => Some(first.clone()),
            SubgroupKind::All => {
                fold(ArithmeticOperation::And, &mut operands.iter().map(|(_, value)| truth(value)))
            }
            SubgroupKind::Any => {
                fold(ArithmeticOperation::Or, &mut operands.iter().map(|(_, value)| truth(value)))
            }
            SubgroupKind::Ballot => {
                let bit = |(number, value): &(u32, E)| {
                    let weight = constant(1u32.checked_shl(*number).unwrap_or(0));
                    compute(ArithmeticOperation::Multiply, truth(value), weight)
                };
                fold(ArithmeticOperation::Or, &mut operands.iter().map(bit))
            }
            SubgroupKind::AllEqual => {
                let others = operands.get(1..).unwrap_or_default();
                let differs =
                    |(_, value): &(u32, E)| compute(ArithmeticOperation::Xor, value.clone(), first.clone());
                Some(match fold(ArithmeticOperation::Or, &mut others.iter().map(differs)) {
                    Some(bits) => compute(ArithmeticOperation::Xor, truth(&bits), constant(1)),
                    None => constant(1),
                })
            }
            SubgroupKind::Arithmetic(span, operation) => {
                let counts = |number: u32| match span {
                    SubgroupSpan::Reduce => true,
                    SubgroupSpan::Inclusive => number <= lane,
                    SubgroupSpan::Exclusive => number < lane,
                };
                let mut values =
                    operands.iter().filter(|(number, _)| counts(*number)).map(|(_, value)| value.clone());
                let neutral = match operation {
                    ArithmeticOperation::Minimum | ArithmeticOperation::And => u32::MAX,
                    _ => 0,
                };
                Some(fold(operation, &mut values).unwrap_or_else(|| constant(neutral)))
            }
            _ => None,
        }
    }
}

impl InstructionKind {
    /// The subgroup operation, where it is one.
    pub fn subgroup_operation(&self) -> Option<&SubgroupOperation> {
        if let InstructionKind::Subgroup(operation) = self { Some(operation) } else { None }
    }
}
