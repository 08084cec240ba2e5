//! The tests of a plan: the program of each test; its model, prediction and kernel on each device.

use std::sync::{Arc, OnceLock};

use litmus::convert::guard_forced_reads;
use litmus::{Dialect, LoweredTest, LoweringError, Outcome, Prediction, Term, Test};
use results::portability::HsaComparison;
use runner::RunVariant;

use crate::Failure;
use crate::models::{self, LoadedModel};
use crate::source::LoadedTest;

#[derive(Debug)]
pub struct PlannedTest {
    /// The test with its source.
    pub loaded: LoadedTest,
    /// BLAKE3 hash of its text.
    pub hash: String,
    /// The program to judge, unless it is the loaded test, as most are.
    other_judged_test: Option<Test>,
    /// The same program with its undefined initial values, if it has any.
    pub(super) test_with_undefined: Option<Test>,
    /// The HSA source of the test, if it was lowered.
    pub hsa: Option<HsaSource>,
    /// The variant that devices run.
    pub variant: RunVariant,
}

impl PlannedTest {
    /// Derives the program that devices run, and the one that a model judges.
    ///
    /// # Errors
    /// If the variant in its id is unknown.
    pub fn new(mut loaded: LoadedTest) -> Result<PlannedTest, Failure> {
        let variant: RunVariant = loaded
            .source
            .variant
            .parse()
            .map_err(|error| Failure::input_message(format!("{}: {error}", loaded.source.argument)))?;
        let hash = models::text_hash(&loaded.text);
        if loaded.test.khronos.is_some() {
            // A device cannot be forced to read a value, so the program guards the rest of the thread instead.
            loaded.test = guard_forced_reads(&loaded.test);
            loaded.text = litmus::print(&loaded.test);
        }
        let hsa = (loaded.test.dialect == Dialect::Hsa).then(|| lower_from_hsa(&mut loaded));
        // The variant may change the meaning: GLSL450 has no scopes. If the variant cannot express the test,
        // there is no kernel, and the test is skipped for that reason.
        let effective_test =
            shaders::effective_test(&loaded.test, variant.shader).unwrap_or_else(|_| loaded.test.clone());
        let renamed = match &hsa {
            Some(HsaSource { test, lowered: Ok(lowered), .. }) => {
                LoweredTest { test: effective_test, hsa_observables: lowered.hsa_observables.clone() }
                    .with_hsa_names(test)
            }
            _ => effective_test,
        };
        let unfiltered = without_filter(&renamed);
        let defined = unfiltered.with_defined_values();
        let other_judged_test = (defined != loaded.test).then_some(defined);
        let test_with_undefined = unfiltered.has_undefined_locations().then_some(unfiltered);
        Ok(PlannedTest { hash, other_judged_test, test_with_undefined, variant, loaded, hsa })
    }

    /// Returns the program to judge: without filter, which a device does not apply, and with a defined value for
    /// each undefined one.
    pub fn judged_test(&self) -> &Test {
        self.other_judged_test.as_ref().unwrap_or(&self.loaded.test)
    }
}

/// An HSA test of the plan. Devices run the lowered program; the report shows the HSA answer next to the
/// verdict.
#[derive(Debug)]
pub struct HsaSource {
    pub test: Test,
    pub text: String,
    /// The Vulkan program, or why there is none.
    pub lowered: Result<LoweredTest, LoweringError>,
}

/// Replaces an HSA test by its Vulkan program.
fn lower_from_hsa(loaded: &mut LoadedTest) -> HsaSource {
    let test = loaded.test.clone();
    let text = loaded.text.clone();
    let lowered = litmus::lower_to_vulkan(&test);
    if let Ok(lowered) = &lowered {
        loaded.test = lowered.test.clone();
        loaded.text = litmus::print(&loaded.test);
    }
    HsaSource { test, text, lowered }
}

#[derive(Debug)]
pub struct DeviceTest {
    /// Index into the tests of the plan.
    pub test_index: usize,
    /// Index into the devices of the plan.
    pub target_index: usize,
    /// The model for the verdict.
    pub model: Arc<LoadedModel>,
    /// The prediction, or the skip reason; empty if the time for the plan did not reach the test.
    pub prediction: OnceLock<PredictionResult>,
    /// The HSA answer, if the test was lowered from HSA.
    pub hsa_comparison: Option<Arc<HsaComparison>>,
    /// BLAKE3 hash of the kernel; empty without one.
    pub kernel_hash: String,
    /// The ids of the test's mutants on the same device.
    pub mutants: Vec<String>,
    /// Weak outcomes that the model allows and that a baseline of the device has.
    pub expected_outcomes: Vec<Outcome>,
    /// Weak outcomes that the model allows and that store buffers produce, if the device has no baseline.
    pub calibrated_outcomes: Vec<Outcome>,
}

/// A prediction, or the reason to skip its test.
pub type PredictionResult = Result<Arc<Prediction>, String>;

impl DeviceTest {
    /// Returns the prediction, if it is known.
    pub fn known_prediction(&self) -> Option<&Prediction> {
        self.prediction.get()?.as_deref().ok()
    }

    /// Returns why the test is skipped, as far as it is known.
    pub fn skip_reason(&self) -> Option<&String> {
        self.prediction.get()?.as_ref().err()
    }
}

/// Removes the filter of a test, and lists the locations of the filter in its outcomes.
pub fn without_filter(test: &Test) -> Test {
    let mut unfiltered = test.clone();
    if let Some(filter) = unfiltered.filter.take() {
        filter.for_each_term(&mut |term| {
            if matches!(term, Term::Location(..)) {
                unfiltered.listed_terms.push(term.clone());
            }
        });
    }
    unfiltered
}

/// Marks the outcomes that the test's filter excludes.
pub fn mark_filtered(test: &Test, prediction: &mut Prediction) {
    let Some(filter) = &test.filter else { return };
    for (outcome, predicted) in &mut prediction.outcomes {
        predicted.filtered = !outcome.meets_condition(test, &prediction.observables, filter);
    }
}
