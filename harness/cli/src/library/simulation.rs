//! Runs on the simulated GPU, and judging of counts from any device.
//!
//! `vk-litmus run --device sim` runs the same machine in worker processes. The same code builds the lines of
//! both.

use campaign::Failure;
use model::Budget;
use results::state::State;
use results::wire::RunLine;
use verdicts::{JudgeRequest, SimulationRequest, judge_test, simulate_test};

use super::error::Error;
use super::model::AxiomaticModel;
use super::test::LitmusTest;

/// The simulated GPU: an operational machine with weak memory that executes the SPIR-V of a test.
///
/// Results are deterministic. With an injected fault, the machine breaks a rule of the model, to test a
/// harness.
///
/// ```
/// use vk_litmus::wire::VerdictWord;
/// use vk_litmus::{LitmusTest, AxiomaticModel, SimulatedGpu};
///
/// let (test, vulkan) = (LitmusTest::find("mp/MP+rel-acq")?.remove(0)?, AxiomaticModel::named("vulkan")?);
/// let sound = SimulatedGpu::new().instances(4000).seed(3);
/// assert_eq!(sound.run(&test, &vulkan)?.verdict, VerdictWord::Conforms);
/// let faulty = sound.fault("release-does-not-drain-stores");
/// let line = faulty.run(&test, &vulkan)?;
/// assert_eq!(line.verdict, VerdictWord::Violates);
/// assert!(line.outcomes.iter().map(|outcome| outcome.count).sum::<u64>() >= 4000);
/// assert!(SimulatedGpu::fault_names().any(|(name, _)| name == "release-does-not-drain-stores"));
/// assert!(SimulatedGpu::new().fault("none-such").run(&test, &vulkan).is_err());
/// # Ok::<(), vk_litmus::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SimulatedGpu {
    fault: Option<String>,
    instances: u64,
    seed: u64,
}

impl Default for SimulatedGpu {
    fn default() -> SimulatedGpu {
        SimulatedGpu::new()
    }
}

impl SimulatedGpu {
    /// Creates a sound machine that runs 10,000 instances of each test with the seed 0.
    pub fn new() -> SimulatedGpu {
        SimulatedGpu { fault: None, instances: 10_000, seed: 0 }
    }

    /// Injects a fault by its name.
    #[must_use]
    pub fn fault(mut self, name: &str) -> SimulatedGpu {
        self.fault = Some(name.to_owned());
        self
    }

    /// Sets the number of instances of a test; the last dispatch may add a few.
    #[must_use]
    pub fn instances(mut self, instances: u64) -> SimulatedGpu {
        self.instances = instances.max(1);
        self
    }

    /// Sets the seed of all random choices.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> SimulatedGpu {
        self.seed = seed;
        self
    }

    /// Returns the names of the faults, each with the rule that it breaks.
    pub fn fault_names() -> impl Iterator<Item = (&'static str, &'static str)> {
        sim::FAULTS.iter().map(|row| (row.name, row.rule))
    }

    /// Runs a test and judges the histogram by a model, as `run --format json` prints it.
    ///
    /// # Errors
    /// If the fault is unknown, the model does not judge the test, or the test needs the program: HSA's
    /// dialect, a filter, or undefined initial values.
    pub fn run(&self, test: &LitmusTest, model: &AxiomaticModel) -> Result<RunLine, Error> {
        let loaded = &test.loaded;
        let file = &loaded.source.file;
        let request = SimulationRequest {
            test: &loaded.test,
            id: &loaded.source.id,
            text: &loaded.text,
            file,
            model: &model.chosen.model,
            budget: Budget::default(),
            fault: self.fault.as_deref(),
            instances: self.instances,
            seed: self.seed,
        };
        let line = simulate_test(&request);
        line.map_err(|error| Error::for_file(file, Failure::input_message(error.to_string())))
    }
}

/// Judges the outcomes of any device by a model. Each outcome has final values by name, and the number of its
/// instances.
///
/// A forbidden outcome of a test without races is the verdict `violates`. The names are those of conditions:
/// `P1:r0`, `x`.
///
/// # Errors
/// If the model does not judge the test, or a state lacks an observable of the test.
///
/// ```
/// use std::collections::BTreeMap;
/// use vk_litmus::wire::{State, VerdictWord};
/// use vk_litmus::{LitmusTest, AxiomaticModel, judge_counts};
///
/// let (test, vulkan) = (LitmusTest::find("mp/MP+rel-acq")?.remove(0)?, AxiomaticModel::named("vulkan")?);
/// let state = |flag: u64, data: u64| -> State {
///     BTreeMap::from([("P1:r0".to_owned(), flag.into()), ("P1:r1".to_owned(), data.into())])
/// };
/// let counts = [(state(0, 0), 700), (state(1, 1), 299), (state(1, 0), 1)];
/// let line = judge_counts(&test, &vulkan, "my-gpu", &counts)?;
/// assert_eq!((line.verdict, line.instances), (VerdictWord::Violates, 1000));
///
/// // Without instances there is no evidence.
/// assert_eq!(judge_counts(&test, &vulkan, "my-gpu", &[])?.verdict, VerdictWord::Inconclusive);
/// # Ok::<(), vk_litmus::Error>(())
/// ```
pub fn judge_counts(
    test: &LitmusTest,
    model: &AxiomaticModel,
    device: &str,
    counts: &[(State, u64)],
) -> Result<RunLine, Error> {
    let loaded = &test.loaded;
    let request = JudgeRequest {
        test: &loaded.test,
        id: &loaded.source.id,
        model: &model.chosen.model,
        budget: Budget::default(),
        device,
        counts,
        dispatches: 1,
        not_executed: 0,
    };
    let line = judge_test(&request);
    line.map_err(|error| Error::for_file(&loaded.source.file, Failure::input_message(error.to_string())))
}
