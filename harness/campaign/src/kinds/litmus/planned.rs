//! The cells of a plan: the program of each test, and the test on a device with model, prediction and kernel.

use std::sync::Arc;

use litmus::convert::guard_forced_reads;
use litmus::{Dialect, Lowered, LoweringError, Outcome, Prediction, Term, Test};
use results::portability::HsaComparison;
use runner::RunVariant;

use crate::Failure;
use crate::choice::{self, Chosen};
use crate::source::Loaded;

/// A test of the plan.
#[derive(Debug)]
pub struct PlannedTest {
    /// The test with its source.
    pub loaded: Loaded,
    /// BLAKE3 hash of its text.
    pub hash: String,
    /// The program to judge: without filter, which a device does not apply, and with a defined value for each
    /// undefined one.
    pub judged: Test,
    /// The same program with its undefined initial values, if it has any.
    pub(super) undefined: Option<Test>,
    /// The HSA source of the test, if it was lowered.
    pub hsa: Option<FromHsa>,
    /// The variant that devices run.
    pub variant: RunVariant,
}

impl PlannedTest {
    /// Derives the program that devices run, and the one that a model judges.
    ///
    /// # Errors
    /// If the variant in its id is unknown.
    pub fn new(mut loaded: Loaded) -> Result<PlannedTest, Failure> {
        let variant: RunVariant = loaded
            .source
            .variant
            .parse()
            .map_err(|error| Failure::input_message(format!("{}: {error}", loaded.source.argument)))?;
        let hash = choice::hash(&loaded.text);
        if loaded.test.khronos.is_some() {
            // A device cannot be forced to read a value, so the program guards the rest of the thread instead.
            loaded.test = guard_forced_reads(&loaded.test);
            loaded.text = litmus::print(&loaded.test);
        }
        let hsa = (loaded.test.dialect == Dialect::Hsa).then(|| lower_from_hsa(&mut loaded));
        // The variant may change the meaning: GLSL450 has no scopes. If the variant cannot express the test,
        // there is no kernel, and the test is skipped for that reason.
        let said =
            shaders::effective_test(&loaded.test, variant.shader).unwrap_or_else(|_| loaded.test.clone());
        let named = match &hsa {
            Some(FromHsa { test, lowered: Ok(lowered), .. }) => {
                Lowered { test: said, meaning: lowered.meaning.clone() }.with_names_of(test)
            }
            _ => said,
        };
        let asked = without_filter(&named);
        let judged = asked.with_values();
        let undefined = asked.has_undefined().then_some(asked);
        Ok(PlannedTest { hash, judged, undefined, variant, loaded, hsa })
    }
}

/// An HSA test of the plan. Devices run the lowered program; the report shows the HSA answer next to the
/// verdict.
#[derive(Debug)]
pub struct FromHsa {
    /// The HSA test.
    pub test: Test,
    /// The text of the HSA test.
    pub text: String,
    /// The Vulkan program, or why there is none.
    pub lowered: Result<Lowered, LoweringError>,
}

/// Replaces an HSA test by its Vulkan program.
fn lower_from_hsa(loaded: &mut Loaded) -> FromHsa {
    let test = loaded.test.clone();
    let text = loaded.text.clone();
    let lowered = litmus::lower_to_vulkan(&test);
    if let Ok(lowered) = &lowered {
        loaded.test = lowered.test.clone();
        loaded.text = litmus::print(&loaded.test);
    }
    FromHsa { test, text, lowered }
}

/// A test on a device.
#[derive(Debug)]
pub struct DeviceTest {
    /// Index into the tests of the plan.
    pub item: usize,
    /// Index into the devices of the plan.
    pub target: usize,
    /// The model for the verdict.
    pub model: Arc<Chosen>,
    /// The prediction, or the skip reason.
    pub ready: Result<Arc<Prediction>, String>,
    /// The HSA answer, if the test was lowered from HSA.
    pub beside: Option<Arc<HsaComparison>>,
    /// BLAKE3 hash of the kernel; empty without one.
    pub kernel: String,
    /// The ids of the test's mutants on the same device.
    pub mutants: Vec<String>,
    /// Weak outcomes that the model allows and that a baseline of the device has.
    pub expected: Vec<Outcome>,
    /// Weak outcomes that the model allows and that store buffers produce, if the device has no baseline.
    pub calibrated: Vec<Outcome>,
}

/// Removes the filter of a test, and lists the locations of the filter in its outcomes.
pub fn without_filter(test: &Test) -> Test {
    let mut judged = test.clone();
    if let Some(filter) = judged.filter.take() {
        filter.for_each_term(&mut |term| {
            if matches!(term, Term::Location(..)) {
                judged.listed.push(term.clone());
            }
        });
    }
    judged
}

/// Marks the outcomes that the test's filter excludes.
pub fn mark_filtered(test: &Test, prediction: &mut Prediction) {
    let Some(filter) = &test.filter else { return };
    for (outcome, says) in &mut prediction.outcomes {
        says.filtered = !outcome.meets_condition(test, &prediction.observables, filter);
    }
}
