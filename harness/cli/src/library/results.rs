//! Results of a run of the program.

use std::path::Path;

use results::read;
use results::wire::{PlanRecord, RunLine};

use super::error::Error;

/// The plan and the verdicts of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunResults {
    /// The plan of the run; `None` if only lines were saved.
    pub plan: Option<PlanRecord>,
    /// A verdict for each test and device, in the order of the plan.
    pub lines: Vec<RunLine>,
    /// The number of planned verdicts that are missing, because the run has not finished or was stopped.
    pub missing: usize,
}

/// Reads a results folder (`run --out`), a journal, or saved lines of `run --format json`.
///
/// Records are checked: a verdict that does not follow from its counts, or that was changed after it was
/// written, is an error.
///
/// # Errors
/// If there are no results, or a record is malformed; [`Error::line`] is its line in the journal.
///
/// ```
/// use vk_litmus::{LitmusTest, AxiomaticModel, SimulatedGpu, read_results};
///
/// let test = LitmusTest::find("mp/MP+rel-acq")?.remove(0)?;
/// let line = SimulatedGpu::new().instances(1000).run(&test, &AxiomaticModel::named("vulkan")?)?;
/// let file = std::env::temp_dir().join(format!("vk-litmus-doc-{}.jsonl", std::process::id()));
/// std::fs::write(&file, serde_json::to_string(&line)? + "\n")?;
///
/// let results = read_results(&file)?;
/// assert_eq!(results.lines, [line]);
/// assert!(read_results("/no/such/folder").is_err());
/// # std::fs::remove_file(&file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_results(path: impl AsRef<Path>) -> Result<RunResults, Error> {
    let found = read::read_results(path.as_ref())?;
    let missing = found.count_missing();
    Ok(RunResults { plan: found.plan, lines: found.lines, missing })
}
