//! Checks a certificate: structures, proofs, claims and witnesses.

use litmus::{Outcome, Test, Value};

use crate::cat;
use crate::format::{
    Certificate, EventStructure, ExecutionChoice, FlagGroup, NamedSet, ObservedValue, ProofStep, ProvedClaim,
    SCHEMA, StructureProof, WitnessExecution,
};
use crate::plan::{self, Bounds, Leaves, Plan, ValueKind};
use crate::relation::Relation;
use crate::values::find_outcomes;

/// Events of a structure.
const MAX_EVENTS: usize = 256;

/// The reason that a certificate is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It is not a certificate of this format.
    #[error("not a certificate: {0}")]
    Format(String),
    #[error("the text of the test: {0}")]
    Test(String),
    /// The text of the model has an error or a construct that the checker does not support.
    #[error("the text of the model: {0}")]
    Model(String),
    /// The data of an event structure contradict each other.
    #[error("structure {structure}: {what}")]
    Structure {
        structure: usize,
        /// The contradiction.
        what: String,
    },
    /// A step of a proof is invalid.
    #[error("structure {structure}, step {step}: {what}")]
    Step { structure: usize, step: usize, what: &'static str },
    /// A claim has no proof.
    #[error("structure {structure}: no proof that {claim:?} covers every execution")]
    Claim { structure: usize, claim: ProvedClaim },
    #[error("the execution of {of}: {what}")]
    Witness {
        /// The outcome or flag.
        of: String,
        what: &'static str,
    },
    /// A list of the certificate disagrees with another part.
    #[error("{0}")]
    List(String),
    #[error("the time limit was reached")]
    Stopped,
}

/// The size of a certificate that was verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateSize {
    /// Allowed outcomes, each with an execution.
    pub allowed: usize,
    pub structures: usize,
    pub steps: usize,
}

/// The claims that a step proves.
#[derive(Clone, Debug, Default)]
struct StepConclusion {
    claims: Vec<ProvedClaim>,
    choices: Vec<ExecutionChoice>,
}

/// The parts that all structures share.
struct CertificateChecker<'a> {
    certificate: &'a Certificate,
    test: Test,
    plan: Plan,
    domain: Option<&'a [u64]>,
    /// The claims that each structure needs a proof for, if it can have an outcome.
    claims: Vec<ProvedClaim>,
    stop: &'a dyn Fn() -> bool,
}

/// A structure with the facts that follow from it before any choice.
struct CheckedStructure<'a> {
    structure: &'a EventStructure,
    candidates: Vec<Vec<usize>>,
    reads: Vec<usize>,
    writes: Vec<usize>,
    initial: Relation,
    leaves: Leaves,
    root: Bounds,
}

/// Verifies a certificate, until `stop` returns true.
///
/// # Errors
/// The first invalid part, with its position.
pub fn verify(
    certificate: &Certificate,
    stop: &dyn Fn() -> bool,
) -> Result<CertificateSize, CertificateError> {
    if certificate.schema != SCHEMA {
        return Err(CertificateError::Format(format!("schema {} instead of {SCHEMA}", certificate.schema)));
    }
    let test = litmus::parse(&certificate.test, &certificate.name)
        .map_err(|errors| CertificateError::Test(errors.to_string()))?;
    let model = cat::parse(&certificate.model).map_err(CertificateError::Model)?;
    let first = certificate.structures.first();
    let kind = |name: &str| {
        first.and_then(|structure| structure.bases.get(name)).map(|set| match set {
            NamedSet::Events(_) => ValueKind::Set,
            NamedSet::Rows(_) => ValueKind::Relation,
        })
    };
    let plan = plan::compile(&model, occurring_classes(certificate), test.has_undefined_locations(), &kind)
        .map_err(CertificateError::Model)?;
    let allows_thin_air = model.options.get("values").is_none_or(|values| values == "free");
    let domain = allows_thin_air.then_some(certificate.domain.as_slice());
    let claims = required_claims(certificate, &plan, &test)?;
    let context = CertificateChecker { certificate, test, plan, domain, claims, stop };
    let frames: Vec<CheckedStructure<'_>> = certificate
        .structures
        .iter()
        .enumerate()
        .map(|(index, structure)| {
            context.poll_stop()?;
            let framed = CheckedStructure::new(structure, first.unwrap_or(structure), &context.plan);
            framed.map_err(|what| CertificateError::Structure { structure: index, what })
        })
        .collect::<Result<_, _>>()?;
    if certificate.proofs.len() != frames.len() {
        return Err(CertificateError::List("structures and proofs differ in number".to_owned()));
    }
    let mut verified = CertificateSize { structures: frames.len(), ..CertificateSize::default() };
    for (index, (frame, proof)) in frames.iter().zip(&certificate.proofs).enumerate() {
        context.check_proof(index, frame, proof)?;
        verified.steps += proof.steps.len();
    }
    for allowed in &certificate.allowed {
        context.check_witness(&frames, &allowed.witness, Some(&allowed.values), None)?;
        verified.allowed += 1;
    }
    for claim in &certificate.flags {
        if let Some(witness) = &claim.witness {
            context.check_witness(&frames, witness, None, Some(claim.group))?;
        }
    }
    Ok(verified)
}

/// The storage classes of accesses and semantics of any structure.
fn occurring_classes(certificate: &Certificate) -> u8 {
    let occurs = |class: &u8| {
        let names = [format!("SC{class}"), format!("SEMSC{class}")];
        certificate.structures.iter().any(|structure| {
            let bases = names.iter().filter_map(|name| structure.bases.get(name));
            bases.into_iter().any(|set| matches!(set, NamedSet::Events(events) if !events.is_empty()))
        })
    };
    (0..4).filter(occurs).fold(0, |mask, class| mask | 1 << class)
}

/// Checks the lists of the certificate and returns the claims that need a proof.
fn required_claims(
    certificate: &Certificate,
    plan: &Plan,
    test: &Test,
) -> Result<Vec<ProvedClaim>, CertificateError> {
    let error = |what: &str| Err(CertificateError::List(what.to_owned()));
    let observables = test.observables().len();
    let mut claims = vec![ProvedClaim::Outcomes];
    for (index, allowed) in certificate.allowed.iter().enumerate() {
        if allowed.values.len() != observables {
            return error("an outcome with another number of values than the test has observables");
        }
        if certificate.allowed.iter().skip(index + 1).any(|other| other.values == allowed.values) {
            return error("an allowed outcome is listed twice");
        }
        if certificate.forbidden.contains(&allowed.values) {
            return error("an outcome is listed as allowed and as forbidden");
        }
    }
    let names = test.observables().into_iter().map(|observable| test.observable_name(observable));
    if !certificate.observables.iter().cloned().eq(names)
        || certificate.forbidden.iter().any(|outcome| outcome.len() != observables)
    {
        return error("other observables than those of the test");
    }
    if certificate.truncated != certificate.structures.iter().any(|structure| structure.cut) {
        return error("runs are cut off at the loop bound, or none is");
    }
    for group in [FlagGroup::Race, FlagGroup::UndefinedExecution, FlagGroup::UninitialisedRead] {
        let defined = plan.axioms.iter().any(|axiom| axiom.flag == Some(group));
        let claimed: Vec<_> = certificate.flags.iter().filter(|claim| claim.group == group).collect();
        match claimed.as_slice() {
            [] if !defined => {}
            [claim] if defined => {
                claims.extend(claim.witness.is_none().then_some(ProvedClaim::Unflagged(group)))
            }
            _ => return error("flags of the model without exactly one claim"),
        }
    }
    Ok(claims)
}

impl<'a> CheckedStructure<'a> {
    fn new(
        structure: &'a EventStructure,
        first: &EventStructure,
        plan: &Plan,
    ) -> Result<CheckedStructure<'a>, String> {
        let n = structure.events;
        let fail = |what: &str| Err(what.to_owned());
        let kind = |set: &NamedSet| matches!(set, NamedSet::Events(_));
        let names =
            |s: &EventStructure| s.bases.iter().map(|(name, set)| (name.clone(), kind(set))).collect();
        let (own_bases, of_first): (Vec<(String, bool)>, Vec<_>) = (names(structure), names(first));
        if n > MAX_EVENTS
            || structure.storages.len() != n
            || structure.stored.len() != n
            || own_bases != of_first
        {
            return fail("lists of different lengths, or other base names than the first structure");
        }
        let base = |name: &str| match structure.bases.get(name)? {
            NamedSet::Rows(rows) => Relation::from_rows(n, rows.iter().map(String::as_str)),
            NamedSet::Events(events) => {
                let row = Relation::from_rows(n.max(1), std::iter::once(events.as_str()))?;
                let mut set = Relation::empty(n);
                row.targets(0).for_each(|event| set.insert(event, event));
                Some(set)
            }
        };
        let required_base = |name: &str| base(name).ok_or_else(|| format!("no valid base {name}"));
        let [reads, writes, initial, undefined] = ["R", "W", "IW", "UW"].map(required_base);
        let (reads, writes, initial, undefined) = (reads?, writes?, initial?, undefined?);
        check_orders(structure, &required_base)?;
        let is_read = |event: usize| event < n && reads.contains(event, event);
        let is_write = |event: usize| event < n && writes.contains(event, event);
        for event in 0..n {
            let stored = structure.stored[event].as_ref();
            if stored.is_some() != is_write(event)
                || (is_read(event) || is_write(event)) && structure.storages[event].is_none()
                || stored.is_some_and(|value| !value.is_valid(&is_read))
                || initial.contains(event, event) && !is_write(event)
            {
                return Err(format!("event {event}: sets, storage and stored value disagree"));
            }
        }
        let valid = |value: &ObservedValue| match value {
            ObservedValue::Expression(expression) => expression.is_valid(&is_read),
            ObservedValue::LastWrite(storage) => structure.storages.contains(&Some(*storage)),
        };
        if !structure.finals.iter().all(valid) || !structure.constraints.iter().all(|c| c.is_valid(&is_read))
        {
            return fail("a value refers to an event that is not a read");
        }
        let (rmw, vloc) = (required_base("rmw")?, required_base("vloc")?);
        let may_read = |read: usize, write: usize| {
            let read_value = |other: usize| {
                if other == read { structure.stored[write].as_ref()?.evaluate(&|_| None) } else { None }
            };
            is_write(write)
                && write != read
                && structure.storages[write] == structure.storages[read]
                && !rmw.contains(read, write)
                && structure.forced.iter().all(|(source, reader)| *reader != read || *source == write)
                && !structure.constraints.iter().any(|constraint| constraint.is_violated(&read_value))
        };
        let sources = |read: usize| (0..n).filter(|write| is_read(read) && may_read(read, *write)).collect();
        let candidates: Vec<Vec<usize>> = (0..n).map(sources).collect();
        let mut rf = (Relation::empty(n), Relation::empty(n));
        for (read, candidates) in candidates.iter().enumerate() {
            candidates.iter().for_each(|write| rf.1.insert(*write, read));
            if let [write] = candidates.as_slice() {
                rf.0.insert(*write, read);
            }
        }
        let mut co = (Relation::empty(n), Relation::empty(n));
        let (reads, writes): (Vec<usize>, Vec<usize>) =
            ((0..n).filter(|e| is_read(*e)).collect(), (0..n).filter(|e| is_write(*e)).collect());
        for (a, b) in writes.iter().flat_map(|a| writes.iter().map(move |b| (*a, *b))) {
            let alternatives = undefined.contains(a, a) && undefined.contains(b, b) && vloc.contains(a, b);
            if a == b || structure.storages[a] != structure.storages[b] || alternatives {
                continue;
            }
            match (initial.contains(a, a), initial.contains(b, b)) {
                (false, false) => co.1.insert(a, b),
                (true, false) => co.0.insert(a, b),
                // Initial writes of several names of one storage have a fixed order.
                (true, true) if a < b => co.0.insert(a, b),
                _ => {}
            }
        }
        co.1 = co.1.union(&co.0);
        let leaves = Leaves { rf, co };
        let root = plan.evaluate_root(n, &leaves, &base)?;
        Ok(CheckedStructure { structure, candidates, reads, writes, initial, leaves, root })
    }

    /// Returns true if every read has a source.
    fn has_all_sources(&self, sources: &[Option<usize>]) -> bool {
        self.reads.iter().all(|read| sources[*read].is_some())
    }

    /// Returns the bounds under some choices; `None` if these are not choices of the structure or contradict.
    fn apply_choices(&self, choices: &[ExecutionChoice]) -> Option<(Vec<Option<usize>>, Leaves)> {
        let mut leaves = self.leaves.clone();
        let single_candidate =
            |candidates: &Vec<usize>| if let [write] = candidates.as_slice() { Some(*write) } else { None };
        let mut sources: Vec<Option<usize>> = self.candidates.iter().map(single_candidate).collect();
        for choice in choices {
            match *choice {
                ExecutionChoice::Rf(write, read) => {
                    let candidates = self.candidates.get(read)?;
                    if !candidates.contains(&write) || sources[read].is_some_and(|known| known != write) {
                        return None;
                    }
                    sources[read] = Some(write);
                    candidates
                        .iter()
                        .filter(|other| **other != write)
                        .for_each(|other| leaves.rf.1.remove(*other, read));
                    leaves.rf.0.insert(write, read);
                }
                ExecutionChoice::Co(first, second) => {
                    if !self.writes.contains(&first)
                        || !self.writes.contains(&second)
                        || !self.leaves.co.1.contains(first, second)
                    {
                        return None;
                    }
                    leaves.co.0.insert(first, second);
                }
            }
        }
        leaves.co.0 = leaves.co.0.plus();
        leaves.co.1 = leaves.co.1.difference(&leaves.co.0.inverse());
        (!leaves.co.0.has_loop()).then_some((sources, leaves))
    }
}

/// Checks the relations whose shape follows from their meaning.
fn check_orders(
    structure: &EventStructure,
    base: &dyn Fn(&str) -> Result<Relation, String>,
) -> Result<(), String> {
    let n = structure.events;
    let (po, int, loc, rmw) = (base("po")?, base("int")?, base("loc")?, base("rmw")?);
    let subset = |a: &Relation, b: &Relation| a.difference(b).is_empty();
    let mut same_storage = Relation::empty(n);
    for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
        if structure.storages[a].is_some() && structure.storages[a] == structure.storages[b] {
            same_storage.insert(a, b);
        }
    }
    let checks = [
        (
            po.has_loop() || !subset(&po.compose(&po), &po) || !subset(&po, &int),
            "po is no order within threads",
        ),
        (
            po.compose(&base("IW")?) != Relation::empty(n) || base("IW")?.compose(&po) != Relation::empty(n),
            "po has initial writes",
        ),
        (int.inverse() != int || !subset(&int.compose(&int), &int), "int is no equivalence"),
        (!subset(&Relation::identity(n), &int), "int is not reflexive"),
        (Relation::full(n).difference(&int) != base("ext")?, "ext is not the complement of int"),
        (loc != same_storage, "loc does not agree with the storages"),
        (!subset(&rmw, &loc.intersection(&po)), "a read-modify-write of two locations or orders"),
    ];
    checks.iter().find(|(is_violated, _)| *is_violated).map_or(Ok(()), |(_, what)| Err((*what).to_owned()))
}

impl CertificateChecker<'_> {
    fn poll_stop(&self) -> Result<(), CertificateError> {
        if (self.stop)() { Err(CertificateError::Stopped) } else { Ok(()) }
    }

    fn check_proof(
        &self,
        index: usize,
        frame: &CheckedStructure<'_>,
        proof: &StructureProof,
    ) -> Result<(), CertificateError> {
        if frame.structure.finals.len() != self.certificate.observables.len() {
            let what = "another number of final values than observables".to_owned();
            return Err(CertificateError::Structure { structure: index, what });
        }
        let mut proved: Vec<StepConclusion> = Vec::new();
        for (number, step) in proof.steps.iter().enumerate() {
            self.poll_stop()?;
            let checked = self.check_step(frame, step, &proved);
            proved.push(checked.map_err(|what| CertificateError::Step {
                structure: index,
                step: number,
                what,
            })?);
        }
        for needed in &self.claims {
            // A run that does not end has no outcome.
            if *needed == ProvedClaim::Outcomes && !frame.structure.terminated {
                continue;
            }
            let step =
                proof.claims.iter().find(|(claim, _)| claim == needed).and_then(|(_, s)| proved.get(*s));
            if !step.is_some_and(|step| step.choices.is_empty() && step.claims.contains(needed)) {
                return Err(CertificateError::Claim { structure: index, claim: *needed });
            }
        }
        Ok(())
    }

    /// Checks a step and returns its conclusions.
    fn check_step(
        &self,
        frame: &CheckedStructure<'_>,
        step: &ProofStep,
        proved: &[StepConclusion],
    ) -> Result<StepConclusion, &'static str> {
        let bounds = |choices: &[ExecutionChoice]| {
            frame.apply_choices(choices).ok_or("choices that the structure does not have")
        };
        let all_claims = || {
            let groups = [FlagGroup::Race, FlagGroup::UndefinedExecution, FlagGroup::UninitialisedRead];
            std::iter::once(ProvedClaim::Outcomes)
                .chain(groups.map(ProvedClaim::Unflagged))
                .collect::<Vec<ProvedClaim>>()
        };
        let earlier_step = |step: usize| proved.get(step).ok_or("a reference to a later step");
        match step {
            ProofStep::Axiom { choices, name } => {
                let (_, leaves) = bounds(choices)?;
                let is_named_axiom =
                    |axiom: &&plan::Axiom| axiom.flag.is_none() && (name.is_none() || *name == axiom.name);
                let mut axioms = self.plan.axioms.iter().filter(is_named_axiom);
                if !axioms.any(|axiom| self.plan.is_refuted(axiom, &frame.root, &leaves)) {
                    return Err("the axiom is not violated");
                }
                Ok(StepConclusion { claims: all_claims(), choices: choices.clone() })
            }
            ProofStep::Values { choices } => {
                let (sources, leaves) = bounds(choices)?;
                let before = |a: usize, b: usize| leaves.co.0.contains(a, b);
                let found_outcomes = find_outcomes(
                    frame.structure,
                    &sources,
                    &before,
                    self.domain,
                    frame.has_all_sources(&sources),
                )
                .ok_or("the choices do not determine the outcome")?;
                let is_listed =
                    |outcome: &Vec<u64>| self.certificate.allowed.iter().any(|a| a.values == *outcome);
                let mut claims = all_claims();
                claims.retain(|claim| match claim {
                    ProvedClaim::Outcomes => found_outcomes.iter().all(is_listed),
                    ProvedClaim::Unflagged(_) => {
                        !found_outcomes.iter().any(|outcome| self.passes_filter(outcome))
                    }
                });
                Ok(StepConclusion { claims, choices: choices.clone() })
            }
            ProofStep::Unflagged { choices, group } => {
                let (_, leaves) = bounds(choices)?;
                let mut flags = self.plan.axioms.iter().filter(|axiom| axiom.flag == Some(*group));
                if !flags.all(|axiom| self.plan.is_refuted(axiom, &frame.root, &leaves)) {
                    return Err("a flag may be raised");
                }
                Ok(StepConclusion { claims: vec![ProvedClaim::Unflagged(*group)], choices: choices.clone() })
            }
            ProofStep::Read { read, cases } => {
                let candidates = frame.candidates.get(*read).filter(|_| frame.reads.contains(read));
                let candidates = candidates.filter(|candidates| candidates.len() == cases.len());
                let candidates = candidates.ok_or("not one case for each source of a read")?;
                let cases = cases
                    .iter()
                    .zip(candidates)
                    .map(|(case, write)| Ok((earlier_step(*case)?, ExecutionChoice::Rf(*write, *read))));
                Ok(combine_cases(&cases.collect::<Result<Vec<_>, _>>()?, all_claims()))
            }
            ProofStep::Pair { first, second, forwards, backwards } => {
                let is_open = |a: usize, b: usize| {
                    frame.writes.contains(&a) && frame.writes.contains(&b) && frame.leaves.co.1.contains(a, b)
                };
                if !is_open(*first, *second) || !is_open(*second, *first) {
                    return Err("a pair of writes without an open order");
                }
                let cases = [
                    (earlier_step(*forwards)?, ExecutionChoice::Co(*first, *second)),
                    (earlier_step(*backwards)?, ExecutionChoice::Co(*second, *first)),
                ];
                Ok(combine_cases(&cases, all_claims()))
            }
            ProofStep::Implied { step, choices } => {
                let (sources, leaves) = bounds(choices)?;
                let implying_step = earlier_step(*step)?;
                let follows = implying_step.choices.iter().all(|choice| match *choice {
                    ExecutionChoice::Rf(write, read) => sources[read] == Some(write),
                    ExecutionChoice::Co(first, second) => leaves.co.0.contains(first, second),
                });
                if !follows {
                    return Err("the choices do not imply those of the step");
                }
                Ok(StepConclusion { claims: implying_step.claims.clone(), choices: choices.clone() })
            }
        }
    }

    fn passes_filter(&self, outcome: &[u64]) -> bool {
        let outcome = Outcome(outcome.iter().map(|value| Value(*value)).collect());
        self.test
            .filter
            .as_ref()
            .is_none_or(|filter| outcome.meets_condition(&self.test, &self.test.observables(), filter))
    }

    /// Checks that an execution is consistent and has an outcome, or raises a flag.
    fn check_witness(
        &self,
        frames: &[CheckedStructure<'_>],
        execution: &WitnessExecution,
        outcome: Option<&Vec<u64>>,
        group: Option<FlagGroup>,
    ) -> Result<(), CertificateError> {
        let of = match (outcome, group) {
            (Some(values), _) => format!("the outcome {values:?}"),
            (None, Some(group)) => format!("the flag {group:?}"),
            (None, None) => String::new(),
        };
        let fail = |what: &'static str| CertificateError::Witness { of: of.clone(), what };
        self.poll_stop()?;
        let frame = frames.get(execution.structure).ok_or(fail("no such structure"))?;
        if outcome.is_some() && !frame.structure.terminated {
            return Err(fail("a thread does not end"));
        }
        let mut choices: Vec<ExecutionChoice> =
            execution.rf.iter().map(|(write, read)| ExecutionChoice::Rf(*write, *read)).collect();
        for order in &execution.co {
            choices.extend(order.windows(2).filter_map(|pair| {
                let is_initial =
                    |event: usize| event < frame.structure.events && frame.initial.contains(event, event);
                (!is_initial(pair[0])).then_some(ExecutionChoice::Co(pair[0], pair[1]))
            }));
        }
        let (sources, leaves) =
            frame.apply_choices(&choices).ok_or(fail("choices that the structure does not have"))?;
        let reads_all = frame.has_all_sources(&sources);
        if !reads_all || leaves.co.0 != leaves.co.1 || leaves.rf.0 != leaves.rf.1 {
            return Err(fail("a read without a source or writes without an order"));
        }
        let is_refuted = |axiom: &plan::Axiom| self.plan.is_refuted(axiom, &frame.root, &leaves);
        if self.plan.axioms.iter().any(|axiom| axiom.flag.is_none() && is_refuted(axiom)) {
            return Err(fail("an axiom is violated"));
        }
        let before = |a: usize, b: usize| leaves.co.0.contains(a, b);
        let found_outcomes =
            find_outcomes(frame.structure, &sources, &before, self.domain, true).unwrap_or_default();
        if outcome.is_some_and(|expected| !found_outcomes.contains(expected)) {
            return Err(fail("another outcome"));
        }
        if let Some(group) = group {
            let mut flags = self.plan.axioms.iter().filter(|axiom| axiom.flag == Some(group));
            if !flags.any(|axiom| !is_refuted(axiom)) {
                return Err(fail("no flag is raised"));
            }
            if !found_outcomes.iter().any(|outcome| self.passes_filter(outcome)) {
                return Err(fail("no values, or only those that the filter excludes"));
            }
        }
        Ok(())
    }
}

/// Combines one case for each alternative of a choice: returns the conclusions that all of them have, without
/// that choice.
fn combine_cases(cases: &[(&StepConclusion, ExecutionChoice)], all: Vec<ProvedClaim>) -> StepConclusion {
    let mut result = StepConclusion { claims: all, choices: Vec::new() };
    for (case, choice) in cases {
        result.claims.retain(|claim| case.claims.contains(claim));
        result.choices.extend(case.choices.iter().filter(|other| *other != choice));
    }
    result.choices.sort_unstable();
    result.choices.dedup();
    result
}
