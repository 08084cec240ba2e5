//! The records of answers, as the program prints them with `--format json`.
//!
//! Each implements `serde::Serialize` and `Deserialize`. The JSON schemas are in `results/schema/`.

pub use results::state::State;
pub use results::wire::{
    ChangeRecord, CheckLine, CheckOutcome, DriftRecord, DriverRecord, Executions, FindingPlace,
    FindingRecord, Hashes, HsaRun, LevelWord, NeededRecord, PlanRecord, ProgressAnswer, ProgressRun, Query,
    RaceCoverage, RaceLine, RaceVerdict, RaceWitness, RaceWord, RejectedLine, RunLine, RunOutcome,
    ScheduleStep, ShaderChange, ShaderFix, ShaderRun, UnexpectedValues, VerdictWord,
};
