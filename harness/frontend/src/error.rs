//! What is wrong with a module, or beyond the lifter, and where.

use std::fmt;

/// A place in the file of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Nowhere in particular.
    #[default]
    Module,
    /// A line of text, counted from 1.
    Line(u32),
    /// A word of a binary, counted from 0.
    Word(u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Module => Ok(()),
            Place::Line(line) => write!(f, "{line}: "),
            Place::Word(word) => write!(f, "word {word}: "),
        }
    }
}

/// Why a module is not read or not lifted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{what}")]
pub struct Refusal {
    /// Where: a line of the source where the module has debug lines, else a line of its text or a word.
    pub place: Place,
    /// What.
    pub what: Problem,
}

/// What is wrong, or beyond the lifter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not assembly.
    #[error("{0}")]
    Syntax(String),
    /// The words are no module, or its instructions do not fit together.
    #[error("malformed module: {0}")]
    Malformed(String),
    /// Something that the lifter does not have.
    #[error("cannot lift: {0}")]
    Unsupported(String),
    /// There is no such entry point, or several and none was named.
    #[error("{0}")]
    EntryPoint(String),
    /// Two accesses share bytes and differ in extent.
    #[error(
        "cannot lift: {name} is accessed with {first} bytes here and with {second} elsewhere; give it one size"
    )]
    MixedSize {
        /// What is accessed.
        name: String,
        /// Bytes here.
        first: u32,
        /// Bytes elsewhere.
        second: u32,
    },
    /// A value that is read decides an address or a computation and may be anything.
    #[error("cannot lift: {what} depends on a value read whose domain is unbounded; fix it with inputs")]
    Unbounded {
        /// What depends on it.
        what: String,
    },
    /// A float, or what is computed from one, decides control flow or an address.
    #[error("cannot lift: {what} is computed from floats or opaque values")]
    Opaque {
        /// What depends on it.
        what: String,
    },
    /// The same, where a vertex or a fragment is given something of which nothing is said.
    #[error(
        "cannot lift: {what} is computed from floats or opaque values, such as what is given at location {location}: [input.{location}] of \
         a --case file says what it is"
    )]
    NotGiven {
        /// What depends on it.
        what: String,
        /// The location.
        location: u32,
    },
    /// The same, where a sampler gives something of which nothing is said.
    #[error(
        "cannot lift: {what} is computed from floats or opaque values, such as what a sampler gives: --sampler SET.BINDING=linear says \
         how it filters"
    )]
    Sampled {
        /// What depends on it.
        what: String,
    },
    /// More than the lifter takes on.
    #[error("cannot lift: more than {bound} {what}{}", fewer(what))]
    Budget {
        /// Of what.
        what: &'static str,
        /// How many at most.
        bound: usize,
    },
    /// More than there was time for: see `Options::until`.
    #[error("the time was up")]
    OutOfTime,
    /// Fewer orders of the invocations than were asked for (`Options::schedules`): time or steps were too few for all.
    #[error("{tried} of the {asked} orders asked for were tried: time or steps were too few for all")]
    Orders {
        /// How many were tried.
        tried: u64,
        /// How many were asked for.
        asked: u64,
    },
    /// An annotation that is not understood.
    #[error("annotation: {0}")]
    Annotation(String),
    /// What a kernel is given is not understood, or does not fit it.
    #[error("{0}")]
    Input(String),
    /// A claim that is about what the module does not have.
    #[error("{of}: in `{claim}`: {what}")]
    Claim {
        /// Where it stands: `--assert`, or an annotation.
        of: &'static str,
        /// The part of the claim.
        claim: String,
        /// What is wrong with it.
        what: String,
        /// The word that there is not, and those that there are; none where it is something else.
        word: Option<(String, Vec<String>)>,
    },
}

/// Of what there is too much, where a single workgroup has more invocations than are taken on.
pub(crate) const ONE_WORKGROUP: &str = "invocations, of which one workgroup alone has more";

/// What makes fewer of them, in words.
fn fewer(what: &str) -> &'static str {
    match what {
        "invocations" => "; lower --grid",
        "steps of an invocation"
        | "paths of an invocation"
        | "instructions of a thread"
        | "registers of a thread" => "; lower --unroll",
        "paths of all invocations" | "rounds of values" | "locations" => "; lower --grid or --unroll",
        _ => "",
    }
}

impl Problem {
    /// Whether a limit of time or size was met, and nothing is said of the module.
    pub fn is_limit(&self) -> bool {
        matches!(self, Problem::Budget { .. } | Problem::OutOfTime | Problem::Orders { .. })
    }

    /// Whether nothing is wrong with the module, and only time or steps were too few to follow its paths to their ends.
    pub fn is_exhausted(&self) -> bool {
        match self {
            Problem::OutOfTime | Problem::Orders { .. } => true,
            Problem::Budget { what, .. } => {
                matches!(
                    *what,
                    "steps"
                        | "steps of an invocation"
                        | "paths of an invocation"
                        | "paths of all invocations"
                        | "instructions of a thread"
                        | "registers of a thread"
                        | "rounds of values"
                )
            }
            _ => false,
        }
    }

    /// The refusal at a place.
    pub fn at(self, place: Place) -> Refusal {
        Refusal { place, what: self }
    }
}

/// Malformed.
pub(crate) fn malformed(what: impl Into<String>) -> Problem {
    Problem::Malformed(what.into())
}

/// Unsupported.
pub(crate) fn unsupported(what: impl Into<String>) -> Problem {
    Problem::Unsupported(what.into())
}
