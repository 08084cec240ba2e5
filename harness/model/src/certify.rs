//! Certificates of predictions: an execution for each allowed outcome and each raised flag, and a proof that
//! no other execution exists.
//!
//! The `certificate` crate defines the format and checks it. Here [`certify`] produces certificates. It
//! searches the event structures with the engine's bounds (`search`) and records the reason why each branch
//! ends, as conflict-driven SAT solvers do. [`derive_structures`] is the part that the checker trusts: it
//! derives the event structures from the text of the test again.

mod derive;
mod search;

use std::collections::BTreeMap;

use certificate::{
    AllowedOutcome, Certificate, EventStructure, FlagClaim, FlagGroup, ModelText, ProvedClaim, SCHEMA,
    StructureProof, WitnessExecution,
};
use litmus::{Outcome, Prediction, Race, Test, Undefinedness, Value};

use self::derive::derive_structure;
use self::search::{FoundExecutions, ProofFailure, ProofGoal, ProofSearch};
use crate::combinations::for_each_skeleton;
use crate::constants::value_domain;
use crate::iterative_deepening::predict_with_growing_bound;
use crate::matrix::with_smallest_matrix;
use crate::prepared::PreparedPlan;
use crate::skeleton::Skeleton;
use crate::{Model, PredictError, PredictOptions};
use solver::BudgetTracker;

/// Limit of event structures of a certificate.
const MAX_STRUCTURES: usize = 1 << 12;
/// Limit of allowed outcomes of a certificate.
const MAX_OUTCOMES: usize = 1 << 12;

/// An error of [`certify`] or [`derive_structures`].
#[derive(Debug, thiserror::Error)]
pub enum CertifyError {
    /// The model cannot judge the test.
    #[error(transparent)]
    Prediction(#[from] PredictError),
    /// The budget ran out.
    #[error("the time limit was reached")]
    BudgetExhausted,
    /// The test has too many event structures or outcomes.
    #[error("the test has more than {limit} {what}")]
    TooMany {
        /// Event structures or outcomes.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The proof contradicts the prediction of the engine: one of the two is wrong.
    #[error("the proof and the prediction differ in {what}")]
    PredictionMismatch {
        /// The part of the answer.
        what: String,
    },
}

/// A test with the text that its certificate holds.
#[derive(Clone, Copy, Debug)]
pub struct CertifiedTest<'t> {
    /// The name of the test.
    pub name: &'t str,
    /// Its text.
    pub text: &'t str,
    /// The parsed text.
    pub test: &'t Test,
}

/// The data of a certificate that a checker trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedData {
    /// The values that may appear out of thin air.
    pub domain: Vec<u64>,
    /// The event structures.
    pub structures: Vec<EventStructure>,
}

/// Derives the event structures of a test up to the loop bound of `options`, as certificates hold them.
///
/// # Errors
///
/// As for [`predict`](crate::predict), if there are too many, and if the budget runs out.
pub fn derive_structures(
    test: &Test,
    model: &Model,
    options: &PredictOptions<'_>,
) -> Result<TrustedData, CertifyError> {
    let tracker = BudgetTracker::new(options.budget);
    Ok(derive_trusted_data(test, &collect_structures(test, model, options.unroll, &tracker)?))
}

fn derive_trusted_data(test: &Test, skeletons: &[Skeleton]) -> TrustedData {
    TrustedData {
        domain: value_domain(test).iter().map(|value| value.0).collect(),
        structures: skeletons.iter().map(derive_structure).collect(),
    }
}

fn collect_structures(
    test: &Test,
    model: &Model,
    bound: u32,
    tracker: &BudgetTracker<'_>,
) -> Result<Vec<Skeleton>, CertifyError> {
    let mut all = Vec::new();
    for_each_skeleton(test, model.execution_semantics(), bound, &mut |skeleton| {
        all.push(skeleton);
        Ok(all.len() <= MAX_STRUCTURES && !tracker.spend(1))
    })?;
    if tracker.is_exhausted() {
        return Err(CertifyError::BudgetExhausted);
    }
    if all.len() > MAX_STRUCTURES {
        return Err(CertifyError::TooMany { what: "combinations of paths", limit: MAX_STRUCTURES });
    }
    Ok(all)
}

/// Returns the text of a model with its includes.
pub fn model_text(model: &Model) -> ModelText {
    let sources = &model.ast().sources;
    let text = |index: usize| sources.get(index).map_or(String::new(), |source| source.text.to_string());
    let includes = sources.iter().skip(1).map(|source| (source.name.clone(), source.text.to_string()));
    ModelText { name: model.name().to_owned(), text: text(0), includes: includes.collect() }
}

/// Predicts a test, with a growing loop bound ([`predict_with_growing_bound`]), and proves the prediction.
///
/// # Errors
///
/// If the answer cannot be proved within the budget.
pub fn certify(
    certified: CertifiedTest<'_>,
    model: &Model,
    options: &PredictOptions<'_>,
) -> Result<Certificate, CertifyError> {
    let test = certified.test;
    let prediction = predict_with_growing_bound(test, model, options)?;
    let tracker = BudgetTracker::new(options.budget);
    let compiled = model.model_plans_for(test)?;
    let skeletons = collect_structures(test, model, prediction.bound, &tracker)?;
    let TrustedData { domain, structures } = derive_trusted_data(test, &skeletons);
    let thin_air_values = model.execution_semantics().allows_thin_air.then_some(domain.as_slice());
    let groups = flag_groups(&compiled.plan);
    let mut found = FoundExecutions::new(test, MAX_OUTCOMES);
    let mut proofs = Vec::with_capacity(skeletons.len());
    for (index, (skeleton, structure)) in skeletons.iter().zip(&structures).enumerate() {
        let prepared = compiled.prepare_plan(skeleton);
        let prover = StructureProver {
            index,
            skeleton,
            structure,
            prepared: &prepared,
            domain: thin_air_values,
            groups: &groups,
        };
        proofs.push(prover.prove(&mut found, &tracker)?);
    }
    let FoundExecutions { allowed, raised, .. } = found;
    check_prediction(test, &prediction, &allowed, &raised)?;
    let forbidden = prediction.outcomes.iter().filter(|(_, predicted)| !predicted.allowed);
    let values = |outcome: &Outcome| outcome.0.iter().map(|value| value.0).collect();
    Ok(Certificate {
        schema: SCHEMA.to_owned(),
        name: certified.name.to_owned(),
        test: certified.text.to_owned(),
        model: model_text(model),
        bound: prediction.bound,
        truncated: structures.iter().any(|structure| structure.cut),
        observables: prediction
            .observables
            .iter()
            .map(|observable| test.observable_name(*observable))
            .collect(),
        allowed: allowed.into_iter().map(|(values, witness)| AllowedOutcome { values, witness }).collect(),
        forbidden: forbidden.map(|(outcome, _)| values(outcome)).collect(),
        flags: groups
            .iter()
            .map(|group| FlagClaim { group: *group, witness: raised.get(group).cloned() })
            .collect(),
        domain,
        structures,
        proofs,
    })
}

/// The groups of flags that a model defines.
fn flag_groups(plan: &crate::cat::CompiledModel) -> Vec<FlagGroup> {
    let mut groups: Vec<FlagGroup> =
        plan.axioms.iter().filter(|axiom| axiom.is_flag).map(search::flag_group).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// An event structure to prove claims about.
struct StructureProver<'a> {
    index: usize,
    skeleton: &'a Skeleton,
    structure: &'a EventStructure,
    prepared: &'a PreparedPlan,
    domain: Option<&'a [u64]>,
    groups: &'a [FlagGroup],
}

impl StructureProver<'_> {
    fn prove(
        &self,
        found: &mut FoundExecutions<'_>,
        tracker: &BudgetTracker<'_>,
    ) -> Result<StructureProof, CertifyError> {
        with_smallest_matrix!(self.skeleton.len(), M => self.prove_with_matrix::<M>(found, tracker))
    }

    fn prove_with_matrix<M: crate::matrix::Matrix>(
        &self,
        found: &mut FoundExecutions<'_>,
        tracker: &BudgetTracker<'_>,
    ) -> Result<StructureProof, CertifyError> {
        let mut search =
            ProofSearch::<M>::new(self.skeleton, self.structure, self.prepared, self.domain, tracker)?;
        let mut claims = Vec::new();
        let mut goals: Vec<ProofGoal> =
            self.groups.iter().map(|group| ProofGoal::Unflagged(*group)).collect();
        if self.skeleton.terminated {
            goals.insert(0, ProofGoal::Outcomes);
        }
        for goal in goals {
            let claim = match goal {
                ProofGoal::Outcomes => ProvedClaim::Outcomes,
                ProofGoal::Unflagged(group) if found.raised.contains_key(&group) => continue,
                ProofGoal::Unflagged(group) => ProvedClaim::Unflagged(group),
            };
            match search.prove(goal, self.index, found) {
                Ok(step) => claims.push((claim, step)),
                Err(ProofFailure::FlagRaised) => {}
                Err(ProofFailure::BudgetExhausted) => return Err(CertifyError::BudgetExhausted),
                Err(ProofFailure::TooManyOutcomes) => {
                    return Err(CertifyError::TooMany { what: "allowed outcomes", limit: MAX_OUTCOMES });
                }
            }
        }
        Ok(StructureProof { steps: search.into_steps(), claims })
    }
}

/// Compares the proof with the engine's prediction.
fn check_prediction(
    test: &Test,
    prediction: &Prediction,
    allowed: &BTreeMap<Vec<u64>, WitnessExecution>,
    raised: &BTreeMap<FlagGroup, WitnessExecution>,
) -> Result<(), CertifyError> {
    let differs = |what: String| Err(CertifyError::PredictionMismatch { what });
    let values = |outcome: &Outcome| -> Vec<u64> { outcome.0.iter().map(|value: &Value| value.0).collect() };
    if prediction.complete {
        let listed = prediction.outcomes.iter().filter(|(_, predicted)| predicted.allowed);
        let listed: Vec<Vec<u64>> = listed.map(|(outcome, _)| values(outcome)).collect();
        let differing = listed
            .iter()
            .find(|outcome| !allowed.contains_key(*outcome))
            .or_else(|| allowed.keys().find(|outcome| !listed.contains(outcome)));
        if let Some(outcome) = differing {
            return differs(format!("the outcome {outcome:?}"));
        }
    }
    let (race, undefined) = (FlagGroup::Race, FlagGroup::UndefinedExecution);
    let races = raised.contains_key(&race) || raised.contains_key(&undefined);
    let agrees = match prediction.race {
        Race::Racy => races,
        Race::Free => !races,
        Race::Unknown => true,
    };
    if !agrees {
        return differs("the race".to_owned());
    }
    if prediction
        .undefinedness
        .is_some_and(|level| (level == Undefinedness::Program) != raised.contains_key(&undefined))
    {
        return differs("the level of undefinedness".to_owned());
    }
    let uninitialised = raised.contains_key(&FlagGroup::UninitialisedRead);
    if test.has_undefined_locations()
        && prediction.uninitialised_read.is_some_and(|reads| reads != uninitialised)
    {
        return differs("reads of undefined initial values".to_owned());
    }
    Ok(())
}
