//! Certificates for tests of the corpus and random programs are verified, and rejected after each change.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use certificate::{Certificate, ExecutionChoice, NamedSet, ObservedValue, ProofStep, ProvedClaim, verify};
use litmus::Test;
use model::certify::{CertifiedTest, CertifyError, certify, derive_structures, model_text};
use model::{Budget, Model, PredictOptions};
use witness::generate::{
    Corner, RandomProgram, generate_classes_program, generate_guarded_program, generate_program,
    generate_split_program, generate_subgroup_program, generate_undefined_program,
};

/// One embedded test in five is certified here; `check --certify` certifies all.
const SAMPLING_INTERVAL: usize = 5;

fn shipped(name: &str) -> Model {
    Model::shipped(name).unwrap_or_else(|| panic!("no model {name}")).unwrap()
}

fn certify_text(name: &str, text: &str, model: &Model, unroll: u32) -> Result<Certificate, CertifyError> {
    let test = litmus::parse(text, name).unwrap_or_else(|errors| panic!("{name}: {errors}"));
    let options = PredictOptions { budget: Budget::from_steps(200_000), unroll };
    certify(CertifiedTest { name, text, test: &test }, model, &options)
}

/// Verifies a certificate as `check --verify` does.
fn is_accepted(certificate: &Certificate, test: &Test, model: &Model) -> bool {
    let options = PredictOptions { budget: Budget::UNLIMITED, unroll: certificate.bound };
    let derived = derive_structures(test, model, &options).unwrap();
    verify(certificate, &|| false).is_ok()
        && certificate.model == model_text(model)
        && derived.structures == certificate.structures
        && derived.domain == certificate.domain
}

#[test]
fn tests_of_the_corpus_have_certificates() {
    let models: BTreeMap<&str, Model> = Model::DEFAULTS.iter().map(|name| (*name, shipped(name))).collect();
    let tests = litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only_tests());
    let mut certified = 0;
    for entry in tests.step_by(SAMPLING_INTERVAL) {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let model = &models[Model::default_for_test(&test)];
        let certificate =
            certify_text(&entry.id, entry.text, model, 1).unwrap_or_else(|e| panic!("{}: {e}", entry.id));
        verify(&certificate, &|| false).unwrap_or_else(|error| panic!("{}: {error}", entry.id));
        let text = serde_json::to_string(&certificate).unwrap();
        assert_eq!(serde_json::from_str::<Certificate>(&text).unwrap(), certificate);
        certified += 1;
    }
    assert!(certified > 200, "{certified} tests");
}

/// Returns the number of random programs: small by default, or `VK_LITMUS_CERTIFICATE_PROGRAMS`.
fn random_program_count() -> u64 {
    let wanted = std::env::var("VK_LITMUS_CERTIFICATE_PROGRAMS").ok();
    wanted.map_or(300, |text| text.parse().expect("VK_LITMUS_CERTIFICATE_PROGRAMS is a number"))
}

#[test]
fn random_programs_have_certificates() {
    let generators: Vec<Box<dyn Fn(u64) -> RandomProgram>> = vec![
        Box::new(generate_program),
        Box::new(generate_undefined_program),
        Box::new(generate_split_program),
        Box::new(generate_classes_program),
        Box::new(generate_subgroup_program),
        Box::new(generate_guarded_program),
        Box::new(witness::calls::generate_calls_program),
        Box::new(|seed| Corner::ALL[seed as usize % Corner::ALL.len()].generate_program(seed)),
    ];
    let models = ["vulkan", "vulkan-2019"].map(shipped);
    let (mut certified, mut refused) = (0_u64, BTreeMap::<String, u64>::new());
    let count = random_program_count();
    for seed in 0..count {
        let drawn = generators[seed as usize % generators.len()](seed);
        let model = &models[seed as usize / generators.len() % models.len()];
        match certify_text("random", &drawn.text, model, drawn.bound) {
            Ok(certificate) => {
                certified += 1;
                verify(&certificate, &|| false)
                    .unwrap_or_else(|error| panic!("{seed}: {error}\n{}", drawn.text));
            }
            // The engine and the proof disagree.
            Err(CertifyError::PredictionMismatch { what }) => panic!("{seed}: {what}\n{}", drawn.text),
            Err(error) => *refused.entry(error.to_string()).or_default() += 1,
        }
    }
    println!("{certified} of {count} programs certified; {refused:?}");
    assert!(certified * 4 > count * 3, "{certified} of {count}: {refused:?}");
}

/// A change of a certificate; false if there is nothing to change.
type CertificateChange = fn(&mut Certificate) -> bool;

/// Removes a case from a step that combines one per source of a read.
fn drop_leaf(certificate: &mut Certificate) -> bool {
    let step = certificate.proofs.iter_mut().flat_map(|proof| &mut proof.steps);
    step.into_iter().any(|step| match step {
        ProofStep::Read { cases, .. } => cases.pop().is_some(),
        _ => false,
    })
}

fn drop_choice(certificate: &mut Certificate) -> bool {
    let mut steps = certificate.proofs.iter_mut().flat_map(|proof| &mut proof.steps);
    steps.any(|step| match step {
        ProofStep::Axiom { choices, .. } => choices.pop().is_some(),
        _ => false,
    })
}

fn change_choice(certificate: &mut Certificate) -> bool {
    let mut steps = certificate.proofs.iter_mut().flat_map(|proof| &mut proof.steps);
    steps.any(|step| match step {
        ProofStep::Axiom { choices, .. } => match choices.last_mut() {
            Some(ExecutionChoice::Rf(write, _)) => {
                *write += 1;
                true
            }
            Some(ExecutionChoice::Co(first, second)) => {
                std::mem::swap(first, second);
                true
            }
            None => false,
        },
        _ => false,
    })
}

fn rename_axiom(certificate: &mut Certificate) -> bool {
    let mut steps = certificate.proofs.iter_mut().flat_map(|proof| &mut proof.steps);
    steps.any(|step| match step {
        ProofStep::Axiom { name, .. } => name.replace("no-axiom-has-this-name".to_owned()).is_some(),
        _ => false,
    })
}

/// Replaces a violated axiom by a statement about values.
fn flip_lemma(certificate: &mut Certificate) -> bool {
    let mut steps = certificate.proofs.iter_mut().flat_map(|proof| &mut proof.steps);
    let Some(step) = steps.find(|step| matches!(step, ProofStep::Axiom { .. })) else { return false };
    *step = ProofStep::Values { choices: Vec::new() };
    true
}

fn drop_claim(certificate: &mut Certificate) -> bool {
    certificate.proofs.iter_mut().any(|proof| proof.claims.pop().is_some())
}

fn swap_claims(certificate: &mut Certificate) -> bool {
    let mut claims = certificate.proofs.iter_mut().flat_map(|proof| &mut proof.claims);
    claims.any(|(claim, step)| *claim == ProvedClaim::Outcomes && std::mem::replace(step, 0) != 0)
}

fn forbid_allowed(certificate: &mut Certificate) -> bool {
    let allowed = certificate.allowed.pop();
    allowed.map(|outcome| certificate.forbidden.push(outcome.values)).is_some()
}

fn forget_allowed(certificate: &mut Certificate) -> bool {
    certificate.allowed.pop().is_some()
}

fn allow_forbidden(certificate: &mut Certificate) -> bool {
    let (Some(values), Some(allowed)) = (certificate.forbidden.pop(), certificate.allowed.first_mut()) else {
        return false;
    };
    allowed.values = values;
    true
}

fn swap_witnesses(certificate: &mut Certificate) -> bool {
    let [first, second, ..] = certificate.allowed.as_mut_slice() else { return false };
    std::mem::swap(&mut first.witness, &mut second.witness);
    true
}

fn change_rf(certificate: &mut Certificate) -> bool {
    let pair = certificate.allowed.iter_mut().find_map(|allowed| allowed.witness.rf.first_mut());
    pair.map(|(write, read)| *write = *read).is_some()
}

fn drop_rf(certificate: &mut Certificate) -> bool {
    let structures = &certificate.structures;
    certificate.allowed.iter_mut().any(|allowed| {
        // A read with one candidate needs no pair.
        let of = &structures[allowed.witness.structure];
        let writes = |read: usize| {
            let storage = of.storages[read];
            (0..of.events).filter(|e| of.stored[*e].is_some() && of.storages[*e] == storage).count()
        };
        let before = allowed.witness.rf.len();
        allowed.witness.rf.retain(|(_, read)| writes(*read) < 2);
        allowed.witness.rf.len() < before
    })
}

fn change_co(certificate: &mut Certificate) -> bool {
    let mut orders = certificate.allowed.iter_mut().flat_map(|allowed| &mut allowed.witness.co);
    orders.any(|order| order.len() > 2 && order.pop().is_some())
}

fn change_model(certificate: &mut Certificate) -> bool {
    let includes = certificate.model.includes.values_mut();
    includes.into_iter().any(|text| {
        let without = text.replace("acyclic part?; (locord | rf | fr | asmo) as consistency", "");
        std::mem::replace(text, without) != *text
    })
}

fn change_base(certificate: &mut Certificate) -> bool {
    certificate.structures.iter_mut().any(|structure| {
        let Some(NamedSet::Rows(rows)) = structure.bases.get_mut("po") else { return false };
        rows.pop().is_some()
    })
}

fn drop_base(certificate: &mut Certificate) -> bool {
    certificate.structures.iter_mut().any(|structure| structure.bases.remove("ssg").is_some())
}

fn change_stored(certificate: &mut Certificate) -> bool {
    let structure = &mut certificate.structures[0];
    structure.stored.iter_mut().flatten().any(|value| match value {
        certificate::ValueExpression::Known(value) => {
            *value += 1;
            true
        }
        _ => false,
    })
}

fn change_final(certificate: &mut Certificate) -> bool {
    let finals = certificate.structures.iter_mut().flat_map(|structure| &mut structure.finals);
    let known = ObservedValue::Expression(certificate::ValueExpression::Known(77));
    finals.into_iter().any(|value| std::mem::replace(value, known.clone()) != known)
}

fn drop_structure(certificate: &mut Certificate) -> bool {
    certificate.proofs.pop();
    certificate.structures.pop().is_some()
}

fn end_threads(certificate: &mut Certificate) -> bool {
    certificate.structures.iter_mut().any(|structure| std::mem::replace(&mut structure.terminated, false))
}

fn change_race(certificate: &mut Certificate) -> bool {
    let witness = certificate.allowed.first().map(|allowed| allowed.witness.clone());
    certificate.flags.first_mut().is_some_and(|claim| match claim.witness.take() {
        Some(_) => true,
        None => {
            claim.witness = witness;
            true
        }
    })
}

fn drop_flags(certificate: &mut Certificate) -> bool {
    certificate.flags.pop().is_some()
}

const CHANGES: [(&str, CertificateChange); 25] = [
    ("drop_leaf", drop_leaf),
    ("drop_choice", drop_choice),
    ("change_choice", change_choice),
    ("rename_axiom", rename_axiom),
    ("flip_lemma", flip_lemma),
    ("drop_claim", drop_claim),
    ("swap_claims", swap_claims),
    ("forbid_allowed", forbid_allowed),
    ("forget_allowed", forget_allowed),
    ("allow_forbidden", allow_forbidden),
    ("swap_witnesses", swap_witnesses),
    ("change_rf", change_rf),
    ("drop_rf", drop_rf),
    ("change_co", change_co),
    ("change_model", change_model),
    ("change_base", change_base),
    ("drop_base", drop_base),
    ("change_stored", change_stored),
    ("change_final", change_final),
    ("drop_structure", drop_structure),
    ("end_threads", end_threads),
    ("change_race", change_race),
    ("drop_flags", drop_flags),
    ("change_schema", |certificate| {
        certificate.schema.push('0');
        true
    }),
    ("change_observables", |certificate| certificate.observables.pop().is_some()),
];

/// Changes of trusted parts. Only the comparison with derived structures and shipped texts must detect them.
const TRUSTED: [&str; 6] =
    ["change_model", "change_base", "change_stored", "change_final", "drop_structure", "end_threads"];

/// Tests whose certificates have every part that the changes modify.
const CHANGED_TESTS: [&str; 4] =
    ["mp/MP+rel-acq", "2+2w/2+2W+fence-fence", "mp/MP+plain", "sb/SB+common-rmw"];

#[test]
fn changed_certificates_are_rejected() {
    let model = shipped("vulkan");
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    for id in CHANGED_TESTS {
        let mut entries = litmus::corpus::tests().into_iter();
        let entry = entries.find(|entry| entry.id == id).unwrap_or_else(|| panic!("no test {id}"));
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let certificate = certify_text(&entry.id, entry.text, &model, 1).unwrap();
        assert!(is_accepted(&certificate, &test, &model), "{id}");
        for (name, change) in CHANGES {
            let mut changed = certificate.clone();
            if change(&mut changed) {
                *made.entry(name).or_default() += 1;
                assert!(!is_accepted(&changed, &test, &model), "{id}: {name} is accepted");
                assert!(
                    TRUSTED.contains(&name) || verify(&changed, &|| false).is_err(),
                    "{id}: {name} verifies"
                );
            }
        }
    }
    let unused: Vec<&str> =
        CHANGES.iter().map(|(name, _)| *name).filter(|name| !made.contains_key(name)).collect();
    assert_eq!(unused, Vec::<&str>::new(), "changes that no certificate has a part for");
}

/// The value does not depend on itself. The engine determines it, but the checker finds a circular
/// dependency.
#[test]
fn an_answer_without_a_proof_has_no_certificate() {
    let id = "lb/LB+false-data-data";
    let entry = litmus::corpus::tests().into_iter().find(|entry| entry.id == id).unwrap();
    let refused = certify_text(id, entry.text, &shipped("amdgpu"), 1);
    assert!(matches!(refused, Err(CertifyError::PredictionMismatch { .. })), "{refused:?}");
    let options = PredictOptions { budget: Budget::from_steps(1), unroll: 1 };
    let test = litmus::parse(entry.text, id).unwrap();
    let subject = CertifiedTest { name: id, text: entry.text, test: &test };
    assert!(matches!(certify(subject, &shipped("vulkan"), &options), Err(CertifyError::BudgetExhausted)));
}
