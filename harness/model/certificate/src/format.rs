//! The wire format of certificates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The schema of the current format.
pub const SCHEMA: &str = "vk-litmus/certificate/1";

/// A model's answer about one test, with its proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// [`SCHEMA`].
    pub schema: String,
    pub name: String,
    pub test: String,
    pub model: ModelText,
    /// Largest number of iterations of a loop.
    pub bound: u32,
    /// True if the loop bound cuts off some run.
    pub truncated: bool,
    /// The values that a read may have if its value depends on itself.
    pub domain: Vec<u64>,
    /// The final values that an outcome lists, by name.
    pub observables: Vec<String>,
    /// The allowed outcomes. All others are forbidden.
    pub allowed: Vec<AllowedOutcome>,
    /// The forbidden outcomes that some candidate execution has, for readers.
    pub forbidden: Vec<Vec<u64>>,
    /// One claim for each group of flags that the model defines.
    pub flags: Vec<FlagClaim>,
    pub structures: Vec<EventStructure>,
    /// The proof of each structure, in the same order.
    pub proofs: Vec<StructureProof>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelText {
    pub name: String,
    pub text: String,
    /// The texts of the included files, by the names in the `include` statements.
    pub includes: BTreeMap<String, String>,
}

/// An outcome with an execution as its witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedOutcome {
    /// The final values, in the order of the observables.
    pub values: Vec<u64>,
    /// A consistent execution with this outcome.
    pub witness: WitnessExecution,
}

/// An execution of a structure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WitnessExecution {
    /// The index of its structure.
    pub structure: usize,
    /// The pairs of `rf`: a write and a read.
    pub rf: Vec<(usize, usize)>,
    /// The writes of each storage in modification order.
    pub co: Vec<Vec<usize>>,
}

/// Flags with one meaning in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlagGroup {
    /// All flags except the other two groups.
    Race,
    /// `undefined-execution`, of HSA.
    UndefinedExecution,
    /// `uninitialised-read`.
    UninitialisedRead,
}

/// A claim about a group of flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlagClaim {
    pub group: FlagGroup,
    /// A consistent execution that raises a flag of the group; none if no execution does.
    pub witness: Option<WitnessExecution>,
}

/// A base set or relation: a bit set of events, or one for each source of a pair, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NamedSet {
    Events(String),
    /// A relation; trailing rows without pairs are left out.
    Rows(Vec<String>),
}

/// An event structure: events, base sets and relations that a combination of paths determines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventStructure {
    pub events: usize,
    /// Base sets and relations by their cat names, except `rf` and `co`.
    pub bases: BTreeMap<String, NamedSet>,
    /// The storage, or cell of it, that each event accesses.
    pub storages: Vec<Option<u16>>,
    /// The value that each write stores.
    pub stored: Vec<Option<ValueExpression>>,
    /// The constraints of the paths on the values of reads.
    pub constraints: Vec<PathConstraint>,
    /// The sources that the test forces: a write and a read.
    pub forced: Vec<(usize, usize)>,
    /// The final value of each observable.
    pub finals: Vec<ObservedValue>,
    /// True if every thread runs to its end, so that the execution has an outcome.
    pub terminated: bool,
    /// True if the loop bound ends a thread.
    pub cut: bool,
}

/// A value computed from reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueExpression {
    /// A constant.
    Known(u64),
    Read(usize),
    /// An operation on two values of a type.
    Apply(String, String, Box<(ValueExpression, ValueExpression)>),
    /// Some bytes of a value: the number skipped, and the number taken.
    Part(u32, u32, Box<ValueExpression>),
    /// Parts at byte offsets.
    Join(Vec<(u32, ValueExpression)>),
}

/// A comparison with the same result on every execution of the structure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathConstraint {
    pub relation: String,
    /// The result of the comparison.
    pub holds: bool,
    pub left: ValueExpression,
    pub right: ValueExpression,
    /// The type as which both are compared.
    pub scalar: String,
}

/// The source of a final value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedValue {
    /// A value computed from reads.
    Expression(ValueExpression),
    /// The last write to a storage.
    LastWrite(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionChoice {
    /// A write and a read that reads from it.
    Rf(usize, usize),
    /// Two writes to one storage; the first is earlier.
    Co(usize, usize),
}

/// A statement of a proof about the executions with certain choices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofStep {
    /// They violate an axiom.
    Axiom {
        choices: Vec<ExecutionChoice>,
        /// The name of the axiom; none for some axiom.
        name: Option<String>,
    },
    /// Values contradict the paths, the outcomes are allowed, or the filter of the test excludes them.
    Values { choices: Vec<ExecutionChoice> },
    /// They raise no flag of a group.
    Unflagged { choices: Vec<ExecutionChoice>, group: FlagGroup },
    /// An earlier step for each source of a read, in the order of the candidates' numbers.
    Read { read: usize, cases: Vec<usize> },
    /// An earlier step for each order of two writes.
    Pair {
        /// The one write.
        first: usize,
        /// The other write.
        second: usize,
        /// The step for `first` before `second`.
        forwards: usize,
        /// The step for the other order.
        backwards: usize,
    },
    /// An earlier step whose choices follow from these, as orders are transitive.
    Implied { step: usize, choices: Vec<ExecutionChoice> },
}

/// A statement about all executions of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProvedClaim {
    /// Every outcome is listed as allowed.
    Outcomes,
    /// No flag of a group is raised.
    Unflagged(FlagGroup),
}

/// The proof about one structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructureProof {
    /// The steps, each after those that it refers to.
    pub steps: Vec<ProofStep>,
    /// The claims with the steps that prove them.
    pub claims: Vec<(ProvedClaim, usize)>,
}
