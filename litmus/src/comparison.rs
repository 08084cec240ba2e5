//! Comparisons of numbers.

/// The relation of two numbers: in a condition, at a branch, or of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// `==` or `=`; `beq`.
    Equal,
    /// `!=`; `bne`.
    NotEqual,
    /// `<`; `blt`.
    Less,
    /// `<=`, `=<` for sizes; `ble`.
    LessOrEqual,
    /// `>`; `bgt`.
    Greater,
    /// `>=`; `bge`.
    GreaterOrEqual,
}

impl Comparison {
    /// Returns true if the relation holds between two numbers of one type.
    pub fn holds<N: Ord>(self, left: N, right: N) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }

    /// Returns the negated relation.
    pub fn opposite(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Less => Comparison::GreaterOrEqual,
            Comparison::LessOrEqual => Comparison::Greater,
            Comparison::Greater => Comparison::LessOrEqual,
            Comparison::GreaterOrEqual => Comparison::Less,
        }
    }

    /// Returns its sign in conditions.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}
