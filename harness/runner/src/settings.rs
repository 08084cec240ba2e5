//! The settings of a run, and its budget.

use std::time::Duration;

use litmus::Outcome;

use crate::exercise::ExerciseCriterion;
use crate::stress::Stress;

/// The budget of a run, which ends when either part is used up. Without both, there is one dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunBudget {
    /// Runs until at least this many instances are accounted for.
    pub instances: Option<u64>,
    /// Runs for this time, but at least for a few thousand instances or a moment, because compiling the
    /// kernels takes longer.
    pub time: Option<Duration>,
}

impl RunBudget {
    /// Creates a budget of instances.
    pub fn instances(instances: u64) -> RunBudget {
        RunBudget { instances: Some(instances), time: None }
    }

    /// Creates a budget of time.
    pub fn time(time: Duration) -> RunBudget {
        RunBudget { instances: None, time: Some(time) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    pub stress: Stress,
    pub budget: RunBudget,
    /// The seed of every drawn parameter; only calibration depends on time.
    pub seed: u64,
    /// Words that an instance may show, which the poison value must avoid.
    pub plausible_words: Vec<u32>,
    /// Time limit of a submission, after which it counts as hanging.
    pub submission_timeout: Duration,
    /// The criterion for an exercised test, if known.
    pub exercise: Option<ExerciseCriterion>,
    /// Weak outcomes that the device has shown before. If the first part of the budget shows none of them, the
    /// rest runs under [another layout](Stress::with_wider_layout).
    pub expected: Vec<Outcome>,
    /// Weak outcomes of store buffering: as `expected` if a calibration of the device shows store buffering.
    pub calibrated: Vec<Outcome>,
}

impl RunSettings {
    /// The default time limit of a submission.
    pub const SUBMISSION_TIMEOUT: Duration = Duration::from_secs(5);

    /// Creates settings without plausible words, with [`RunSettings::SUBMISSION_TIMEOUT`].
    pub fn new(stress: Stress, budget: RunBudget, seed: u64) -> RunSettings {
        RunSettings {
            stress,
            budget,
            seed,
            plausible_words: Vec::new(),
            submission_timeout: RunSettings::SUBMISSION_TIMEOUT,
            exercise: None,
            expected: Vec::new(),
            calibrated: Vec::new(),
        }
    }
}
