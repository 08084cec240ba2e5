//! Errors of predictions.

use crate::cat::CatErrors;

/// The reason that a test has no prediction under a model.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PredictError {
    /// The test has more threads than the engine supports.
    #[error("the test has {threads} threads; at most {bound} are supported")]
    TooManyThreads {
        /// Threads of the test.
        threads: usize,
        /// The bound.
        bound: usize,
    },
    /// An execution has more events than the engine supports.
    #[error("the test has {events} events, initial writes included; at most {bound} are supported")]
    TooManyEvents {
        /// Events of the execution.
        events: usize,
        /// The bound.
        bound: usize,
    },
    /// A thread has more control-flow paths than the engine supports.
    #[error("thread P{thread} has more than {bound} control-flow paths")]
    TooManyPaths {
        /// Index of the thread.
        thread: u32,
        /// The bound.
        bound: usize,
    },
    /// Lanes may reconverge in more ways than the engine supports.
    #[error("the lanes of a subgroup can reconverge in more than {bound} ways")]
    TooManyTangles {
        /// The bound.
        bound: usize,
    },
    /// The test uses the dialect of another memory model.
    #[error("`{model}` is a model of {of} and cannot judge a test of {test}")]
    UnsupportedDialect {
        /// The language of the test.
        test: &'static str,
        /// The model.
        model: String,
        /// The tests that the model supports.
        of: &'static str,
    },
    /// One name is accessed through two storage classes. SPIR-V cannot express it: a variable has one.
    #[error(
        "`{name}` is accessed through two storage classes; a variable has one, and an alias may have another"
    )]
    TwoStorageClasses {
        /// The name.
        name: String,
        /// The access through the second one.
        span: litmus::Span,
    },
    /// The test or the model needs an unsupported feature.
    #[error("not available: {what}")]
    NotAvailable {
        /// The unsupported feature.
        what: String,
    },
    /// The model uses a base set or relation that candidate executions lack.
    #[error("the model uses `{name}`, which no candidate execution has")]
    UnknownBase {
        /// The name.
        name: String,
    },
    /// An inconsistent test that no parser produces: it refers to an undefined item.
    #[error(transparent)]
    NoEntry(litmus::NoEntry),
    /// The model's text has errors.
    #[error("the model cannot be compiled")]
    Model(#[source] CatErrors),
}

impl PredictError {
    /// Returns true if the test is valid, but larger than the engine supports.
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            PredictError::TooManyThreads { .. }
                | PredictError::TooManyEvents { .. }
                | PredictError::TooManyPaths { .. }
                | PredictError::TooManyTangles { .. }
        )
    }
}
