//! What is found out about one skeleton, and in which way: all of its executions where these are few enough, otherwise one
//! question after the other, each only until it is answered.

use std::rc::Rc;

use litmus::Outcome;

use crate::PredictError;
use crate::combine::{Combiner, Findings, Sought, Standing};
use crate::few::Few;
use crate::matrix::Matrix;
use crate::prepared::Prepared;
use crate::refute::{Domains, Refuter, Shown, is_refutable, known};
use crate::sat::Batsat;
use crate::search::{Flags, Goal, Ground, Leaf, Search};
use crate::skeleton::Skeleton;
use crate::symmetry::Tellings;

/// In which ways a skeleton may be explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// Whether few executions are evaluated one by one.
    few: bool,
    /// How many steps the search for all executions may take before single questions are asked instead.
    steps: u64,
    /// How many steps the search for one answer may take before a solver is asked that learns from conflicts.
    pub(crate) alone: u64,
    /// How many steps the search may take in which threads that do the same come in their order, for each two of them. Of others than
    /// threads that count it makes little: locks are left to the solver.
    pub(crate) in_order: u64,
    /// Whether outcomes are listed.
    pub(crate) listing: bool,
    /// Whether threads may change places.
    pub(crate) symmetry: bool,
}

impl Ways {
    /// Every way, each where it is quickest.
    pub(crate) const USUAL: Ways =
        Ways { few: true, steps: 20_000, alone: 2_000, in_order: 4, listing: true, symmetry: true };

    /// The same without a list of outcomes.
    pub(crate) const UNLISTED: Ways = Ways { listing: false, ..Ways::USUAL };
}

/// Outcomes that are asked for one by one at most.
const MAX_ASKED: usize = 1 << 13;

/// What is known of a skeleton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explored {
    /// Whether it has executions, as far as that is known.
    pub(crate) has_some: bool,
    /// Whether what was found is so of every skeleton that is alike.
    pub(crate) of_all: bool,
}

/// Adds what the executions of a skeleton show.
pub(crate) fn explore<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    combiner: &Combiner<'_>,
    ways: Ways,
    findings: &mut Findings,
) -> Result<Explored, PredictError> {
    // Counted anew: a sum that has come to its end would hide that there are more.
    let before = std::mem::take(&mut findings.consistent_executions);
    let asked = explore_uncounted::<M>(skeleton, prepared, combiner, ways, findings);
    let has_some = findings.consistent_executions > 0;
    findings.consistent_executions = findings.consistent_executions.saturating_add(before);
    let asked = asked?;
    Ok(Explored { has_some: asked.has_some || has_some, ..asked })
}

/// Adds what the executions show. Whether there may be some that were not counted.
fn explore_uncounted<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    combiner: &Combiner<'_>,
    ways: Ways,
    findings: &mut Findings,
) -> Result<Explored, PredictError> {
    let one = |has_some| Explored { has_some, of_all: combiner.alike.condition };
    if ways.few
        && let Some(few) = Few::<M>::new(skeleton, prepared, combiner)?
    {
        few.add(skeleton, prepared, combiner, findings);
        return Ok(one(false));
    }
    combiner.add_candidates(findings);
    let ground = Ground::<M>::new(skeleton, prepared)?;
    if findings.unlisted
        && let Some(explored) = explore_in_order(skeleton, prepared, &ground, combiner, ways, findings)
    {
        return Ok(explored);
    }
    let mut questions = Questions::new(skeleton, prepared, &ground, combiner, ways.alone);
    // Where outcomes are not listed, all executions are too many from the start.
    let one_by_one = combiner.plain || questions.domains.is_some();
    if !findings.unlisted || !one_by_one {
        let mut search =
            Search::new(skeleton, prepared, &ground, skeleton.observed_storages(), combiner.purse);
        if one_by_one {
            search.limit(ways.steps);
        }
        let complete = search.run(&mut combiner.collect(findings));
        if complete || !search.gave_up() {
            findings.timed_out |= !complete;
            return Ok(one(findings.unlisted));
        }
        if let Some(explored) = explore_in_order(skeleton, prepared, &ground, combiner, ways, findings) {
            return Ok(explored);
        }
    }
    // From here on executions are no longer counted.
    let conflicts = questions.domains.is_some();
    let mut raised = vec![(findings.grounded, Shown::Grounded)];
    let mut timed_out = false;
    let mut ask = |sought: Sought<'_>, raised: Option<&mut Vec<(Flags, Shown)>>| {
        let shown = questions.find(sought, raised);
        timed_out |= shown.is_none();
        shown.unwrap_or(Shown::Never)
    };
    let has_some = ask(Sought::Any, None) != Shown::Never;
    ask(Sought::Kept, Some(&mut raised));
    for (flags, shown) in raised {
        findings.raise(flags, shown == Shown::OutOfThinAir);
    }
    if skeleton.terminated {
        findings.meets |= findings.meets || ask(Sought::Answer(true), None) != Shown::Never;
        // A conjunction is missed where one of its parts is. Where threads may change places, the whole says the same of all of them
        // and a part need not.
        let parts = combiner.parts().filter(|_| !(conflicts && combiner.alike.is_said_of_all()));
        findings.misses |= findings.misses
            || match parts {
                Some(parts) => (0..parts).any(|part| ask(Sought::Misses(part), None) != Shown::Never),
                None => ask(Sought::Answer(false), None) != Shown::Never,
            };
        if !findings.unlisted {
            let open = findings.outcomes.iter().filter(|(_, standing)| *standing != Standing::Allowed);
            let mut open: Vec<Outcome> = open.map(|(outcome, _)| outcome.clone()).collect();
            if open.len() > MAX_ASKED {
                findings.unlisted = true;
                open.clear();
            }
            for outcome in open {
                match questions.find(Sought::Outcome(&outcome), None) {
                    Some(Shown::Never) => {}
                    Some(shown) => findings.outcomes.allow(outcome, shown == Shown::OutOfThinAir),
                    // What was asked before stands.
                    None => {
                        findings.unlisted = true;
                        break;
                    }
                }
            }
        }
    }
    findings.timed_out |= timed_out;
    Ok(one(has_some || timed_out))
}

/// Adds what is shown by the executions in which threads that do the same come in their order, the condition told of them in every way;
/// `None` where nothing is alike or that was not answered.
///
/// Every execution is alike one of these: whoever changes places with another does so with all that he does, so that threads may be put
/// in the order in which their writes come, those of a group first, then the groups. What an execution shows of the condition, one that
/// is alike shows of it as it is told with these threads in each other's places, so that the condition in every such way asks these
/// executions what it asks of all. Races do not hang on names of threads, nor does the filter, which only swaps that keep it are taken from.
fn explore_in_order<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    ground: &Ground<M>,
    combiner: &Combiner<'_>,
    ways: Ways,
    findings: &mut Findings,
) -> Option<Explored> {
    let tellings = combiner.tellings.filter(|_| !combiner.alike.ordered.is_empty())?;
    if !findings.unlisted || findings.not_in_order || ways.in_order == 0 {
        return None;
    }
    let mut search = Search::new(skeleton, prepared, ground, skeleton.observed_storages(), combiner.purse);
    search.in_order(&combiner.alike.ordered);
    let threads = combiner.alike.ordered.len() as u64 + 1;
    search.limit(ways.in_order.saturating_mul(threads * threads));
    let mut goal = InOrder { combiner, tellings, findings, found: false, timed_out: false };
    let complete = search.run(&mut goal);
    let InOrder { found, timed_out, .. } = goal;
    let answered = complete && !timed_out;
    if !answered {
        findings.timed_out |= !search.gave_up();
        findings.not_in_order = true;
    }
    (answered || findings.timed_out).then_some(Explored { has_some: found || !answered, of_all: answered })
}

/// All that is asked of a skeleton, of the executions in which threads come in their order.
struct InOrder<'f, 'c, 'a> {
    combiner: &'c Combiner<'a>,
    tellings: &'c Tellings,
    findings: &'f mut Findings,
    /// Whether there is an execution.
    found: bool,
    timed_out: bool,
}

impl Goal for InOrder<'_, '_, '_> {
    fn wants(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        let findings = &self.findings;
        let answered = !self.combiner.skeleton.terminated || findings.meets && findings.misses;
        (!self.found || !answered || findings.grounded.misses(flags))
            && !self.combiner.breaks_path(reads_from)
    }

    fn take(&mut self, leaf: Leaf, most: u64) -> u64 {
        let InOrder { combiner, tellings, findings, found, timed_out } = self;
        let looked_at = combiner.outcomes(&leaf, most, &mut |outcome, thin_air| {
            *found = true;
            if combiner.is_sought(Sought::Kept, outcome) {
                findings.raise(leaf.flagged, thin_air);
                if combiner.skeleton.terminated {
                    let says = |wanted| tellings.any_is(&combiner.condition, outcome, wanted);
                    findings.meets = findings.meets || says(true);
                    findings.misses = findings.misses || says(false);
                }
            }
            true
        });
        *timed_out |= looked_at.is_none();
        looked_at.unwrap_or(most)
    }
}

/// A skeleton that is asked one question after the other.
pub(crate) struct Questions<'a, M: Matrix> {
    skeleton: &'a Skeleton,
    prepared: &'a Prepared,
    ground: &'a Ground<M>,
    combiner: &'a Combiner<'a>,
    /// The steps of the search after which the solver is asked.
    alone: u64,
    /// What the solver needs to know of values, where it can be asked.
    domains: Option<Rc<Domains>>,
    /// Made for the first question that it is asked.
    refuter: Option<Refuter<'a, M, Batsat<'a>>>,
}

impl<'a, M: Matrix> Questions<'a, M> {
    pub(crate) fn new(
        skeleton: &'a Skeleton,
        prepared: &'a Prepared,
        ground: &'a Ground<M>,
        combiner: &'a Combiner<'a>,
        alone: u64,
    ) -> Questions<'a, M> {
        let domains = is_refutable(prepared, ground)
            .then(|| Domains::new(skeleton, &ground.reads, &combiner.rules))
            .flatten()
            .filter(|domains| domains.can_ask(skeleton, combiner));
        let domains = domains.map(Rc::new);
        Questions { skeleton, prepared, ground, combiner, alone, domains, refuter: None }
    }

    /// What is shown of the executions of the skeleton that are looked for; `None` when the budget was used up before that
    /// was known. With `raised` those are looked for that raise other flags than these, and what they raise is added, with
    /// what it rests on.
    pub(crate) fn find(
        &mut self,
        sought: Sought<'_>,
        mut raised: Option<&mut Vec<(Flags, Shown)>>,
    ) -> Option<Shown> {
        let Questions { skeleton, prepared, ground, combiner, .. } = *self;
        let mut found = false;
        // Where values depend on each other the search tries too much.
        if combiner.plain || self.domains.is_none() {
            let observed = skeleton.observed_storages();
            let mut search = Search::new(skeleton, prepared, ground, observed, combiner.purse);
            if combiner.plain {
                let Some((reads, alike)) = combiner.sources(&ground.reads, sought) else {
                    return Some(Shown::Never);
                };
                search.restrict(reads, alike);
                if self.domains.is_some() {
                    search.limit(self.alone);
                }
            }
            let mut flags = raised.as_deref().map(|raised| known(raised));
            let mut goal = Find { combiner, sought, flags: flags.as_mut(), found: false, timed_out: false };
            let complete = search.run(&mut goal);
            let timed_out = goal.timed_out;
            found = goal.found;
            if let (Some(raised), Some(flags), true) = (raised.as_deref_mut(), flags, found) {
                raised.push((flags, Shown::Grounded));
            }
            let shown = if found { Shown::Grounded } else { Shown::Never };
            if complete && !timed_out || found && raised.is_none() {
                return Some(shown);
            }
            if !search.gave_up() {
                return found.then_some(shown);
            }
        }
        let domains = self.domains.clone()?;
        let refuter = self.refuter.get_or_insert_with(|| {
            Refuter::new(combiner, prepared, ground, domains, Batsat::new(combiner.purse))
        });
        let shown = refuter.ask(combiner, sought, raised)?;
        Some(if found { Shown::Grounded } else { shown })
    }
}

struct Find<'c, 'a, 'f> {
    combiner: &'c Combiner<'a>,
    sought: Sought<'c>,
    flags: Option<&'f mut Flags>,
    found: bool,
    timed_out: bool,
}

impl Goal for Find<'_, '_, '_> {
    fn wants(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        let open = match &self.flags {
            Some(raised) => raised.misses(flags),
            None => !self.found,
        };
        open && self.combiner.meets_so_far(self.sought, reads_from, &[]) != Some(false)
    }

    fn take(&mut self, leaf: Leaf, _: u64) -> u64 {
        match self.combiner.finds(&leaf, self.sought) {
            Some(true) => {
                self.found = true;
                if let Some(raised) = &mut self.flags {
                    raised.add(leaf.flagged);
                }
            }
            Some(false) => {}
            None => self.timed_out = true,
        }
        1
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "other tests use the other kinds of random tests")]
#[path = "../tests/common/mod.rs"]
mod random;

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use litmus::{
        Access, AccessKind, Condition, InstructionKind, LocationId, Order, Outcome, Place, Placement,
        PredictedOutcome, Race, RmwOperation, Scope, Semantics, StorageClass, StorageClassSet, Term, Test,
    };
    use proptest::prelude::Strategy;
    use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

    use super::{Ways, random};
    use crate::predict::predict_in;
    use crate::{Budget, Model, Options, naive};

    /// Whichever way is taken, the answers are those of the naive enumerator.
    fn agrees(model: &str, ways: Ways) {
        agrees_on(&random::test(), model, ways);
    }

    fn agrees_on(tests: &impl Strategy<Value = Test>, model: &str, ways: Ways) {
        let model = Model::shipped(model).unwrap().unwrap();
        let config = Config {
            cases: 150,
            rng_seed: RngSeed::Fixed(3),
            failure_persistence: None,
            ..Config::default()
        };
        let options = Options { budget: Budget::UNLIMITED, unroll: 1 };
        TestRunner::new(config)
            .run(tests, |test| {
                let Some(slow) = naive::enumerate(&test, &model, 1, 5_000).unwrap() else { return Ok(()) };
                let fast = predict_in(&test, &model, &options, ways).unwrap();
                let observables = test.observables();
                let says = |wanted: bool| {
                    slow.allowed.iter().any(|outcome| {
                        let kept = test.filter.as_ref().is_none_or(|f| outcome.meets(&test, &observables, f));
                        let condition = &test.question.as_ref().unwrap().condition;
                        kept && outcome.meets(&test, &observables, condition) == wanted
                    })
                };
                let those = |is: &dyn Fn(&PredictedOutcome) -> bool| -> HashSet<Outcome> {
                    fast.outcomes.iter().filter(|(_, p)| is(p)).map(|(o, _)| o.clone()).collect()
                };
                let listed = (those(&|p| p.allowed), those(&|p| p.thin_air));
                // What was not found within the bound of loops is not known.
                let known = |found: bool| (found || fast.cut == 0).then_some(found);
                let race = if slow.race == Race::Free && fast.cut > 0 { Race::Unknown } else { slow.race };
                // Of a test that gives every location a value it is known.
                let uninitialised =
                    if test.has_undefined() { known(slow.uninitialised_read) } else { Some(false) };
                let same = (fast.race, fast.race_thin_air) == (race, slow.race_thin_air && fast.cut == 0)
                    && (fast.meets, fast.misses) == (known(says(true)), known(says(false)))
                    && fast.uninitialised_read == uninitialised
                    && (!ways.listing || listed == (slow.allowed, slow.thin_air));
                if same {
                    Ok(())
                } else {
                    Err(TestCaseError::fail(format!("{fast:?}\n{}", litmus::print(&test))))
                }
            })
            .unwrap();
    }

    #[test]
    fn searches_alone() {
        agrees("vulkan", Ways { few: false, ..Ways::USUAL });
        agrees("khronos-alloy", Ways { few: false, ..Ways::USUAL });
    }

    #[test]
    fn outcomes_one_by_one() {
        agrees("vulkan", Ways { few: false, steps: 0, alone: u64::MAX, listing: true, ..Ways::USUAL });
        agrees("dartagnan", Ways { few: false, steps: 0, alone: u64::MAX, listing: true, ..Ways::USUAL });
        agrees("tso", Ways { few: false, steps: 0, alone: u64::MAX, listing: true, ..Ways::USUAL });
    }

    #[test]
    fn outcomes_one_by_one_by_conflicts() {
        for model in ["vulkan", "vulkan-2024-nochains", "khronos-alloy", "dartagnan", "sc", "tso"] {
            agrees(model, Ways { few: false, steps: 0, alone: 0, listing: true, ..Ways::USUAL });
        }
    }

    /// Longer chains of synchronization than random tests have.
    #[test]
    fn the_corpus_by_conflicts() {
        let options = Options { budget: Budget::UNLIMITED, unroll: 1 };
        let ways = Ways { few: false, steps: 0, alone: 0, listing: true, ..Ways::USUAL };
        let model = Model::shipped("vulkan").unwrap().unwrap();
        for entry in litmus::corpus::tests() {
            let test = litmus::parse(entry.text, &entry.id).unwrap();
            if !model.judges(test.dialect) {
                continue;
            }
            let says = |ways| {
                let prediction = predict_in(&test, &model, &options, ways).unwrap();
                (prediction.outcomes, prediction.race, prediction.meets, prediction.misses)
            };
            assert_eq!(says(ways), says(Ways::USUAL), "{}", entry.id);
        }
    }

    #[test]
    fn questions_by_conflicts() {
        for model in ["vulkan", "vulkan-2019", "vulkan-1.2-nochains", "dartagnan", "sc", "tso"] {
            agrees(model, Ways { few: false, steps: 0, alone: 0, listing: false, ..Ways::USUAL });
        }
    }

    #[test]
    fn questions_alone() {
        agrees("vulkan", Ways { few: false, steps: 0, alone: u64::MAX, listing: false, ..Ways::USUAL });
        agrees(
            "vulkan-2019-nochains",
            Ways { few: false, steps: 0, alone: u64::MAX, listing: false, ..Ways::USUAL },
        );
        agrees("sc", Ways { few: false, steps: 0, alone: u64::MAX, listing: false, ..Ways::USUAL });
    }

    #[test]
    fn undefined_values_in_every_way() {
        for (steps, alone, listing) in [(u64::MAX, 0, true), (0, u64::MAX, true), (0, 0, true), (0, 0, false)]
        {
            let ways = Ways { few: false, steps, alone, listing, ..Ways::USUAL };
            agrees_on(&random::undefined(), "vulkan", ways);
        }
    }

    /// A circle in which any value would do, of which two are tried: what one question cannot be met by, another may be.
    #[test]
    fn a_circle_of_any_values() {
        let text = "VULKAN circle\n{ x = 0; y = 0; }\n\
            P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
            ld.atom.dv.sc0 r0, x | ld.atom.dv.sc0 r0, y ;\n\
            add r1, r0, 1 | xor r1, r0, 1 ;\n\
            st.atom.dv.sc0 y, r1 | xor r1, r1, 0 ;\n | st.atom.dv.sc0 x, r1 ;\n\
            exists (P0:r0 == 2 /\\ P1:r0 == 5)\n";
        for text in [text.to_owned(), text.replace("add", "xor")] {
            let test = litmus::parse(&text, "circle").unwrap();
            let model = Model::shipped("vulkan").unwrap().unwrap();
            let options = Options { budget: Budget::UNLIMITED, unroll: 1 };
            let slow = naive::enumerate(&test, &model, 1, 5_000).unwrap().unwrap();
            let ways = Ways { few: false, steps: 0, alone: 0, ..Ways::USUAL };
            let fast = predict_in(&test, &model, &options, ways).unwrap();
            let allowed: HashSet<Outcome> =
                fast.outcomes.iter().filter(|(_, p)| p.allowed).map(|(o, _)| o.clone()).collect();
            assert_eq!((fast.meets, allowed), (Some(false), slow.allowed), "{text}");
            assert!(!slow.thin_air.is_empty(), "{text}");
        }
    }

    /// Tests in which some threads do the same, of other memory or not, in one subgroup or workgroup, or none.
    fn alike() -> impl Strategy<Value = Test> {
        let threads = proptest::collection::vec((0..6u32, (0..2u32, 0..2u32)), 3..5);
        (random::test(), random::test(), threads, 0..3u32).prop_map(|(mut test, other, threads, filter)| {
            let bodies = [test.threads[0].clone(), test.threads[1].clone()];
            let accesses = bodies.iter().flat_map(|thread| &thread.instructions);
            let mut classes: HashMap<LocationId, StorageClass> = HashMap::new();
            for place in accesses.filter_map(|i| i.kind.access()).map(|access| access.place) {
                classes.insert(place.location, place.class);
            }
            let mut thread = |(body, (workgroup, subgroup)): (u32, (u32, u32))| {
                let mut thread = bodies[usize::from(body == 5)].clone();
                thread.place = Place::Device(Placement { queue_family: 0, queue: 0, workgroup, subgroup });
                for access in thread.instructions.iter_mut().filter_map(|i| match &mut i.kind {
                    InstructionKind::Access(access) if body >= 3 => Some(access),
                    _ => None,
                }) {
                    // Two names that start with other values, or one that has an alias.
                    let swapped = if body == 3 { [2, 3] } else { [0, 2] };
                    let place = &mut access.place;
                    if let Some(at) = swapped.iter().position(|other| place.location.0 == *other) {
                        place.location = LocationId(swapped[1 - at]);
                        place.class = *classes.entry(place.location).or_insert(place.class);
                    }
                }
                thread
            };
            test.threads = threads.into_iter().map(&mut thread).collect();
            let asks_others = |condition: &Condition| {
                let mut others = false;
                condition.for_each_term(&mut |term| {
                    others |= matches!(term, Term::Register(t, _) if usize::from(t.0) >= test.threads.len());
                });
                others
            };
            test.filter = other.question.filter(|_| filter > 0).map(|question| question.condition);
            test.filter = test.filter.filter(|condition| !asks_others(condition));
            test.system_sync.clear();
            test
        })
    }

    /// Threads that count: each the same, of one word, with what follows from the number it gets; perhaps one more that looks on. The
    /// condition says the same of all of them, or tells some apart.
    fn counting() -> impl Strategy<Value = Test> {
        let one = |words: &'static [&'static str]| proptest::sample::select(words);
        let operation = one(&[
            "add r0, x, 1",
            "add r0, x, 2",
            "xor r0, x, 1",
            "or r0, x, 1",
            "min r0, x, 1",
            "exchange r0, x, 1",
            "cas r0, x, 1, 0",
        ]);
        let order = one(&["", "acq", "rel", "acq_rel"]);
        let before = one(&[
            "",
            "st.atom.dv.sc0 d, 1",
            "rmw.atom.dv.sc0.add r2, d, 1",
            "st.sc0 d, 1",
            "ld.atom.dv.sc0 r2, y",
        ]);
        let behind = one(&[
            "",
            "st.atom.dv.sc0 y, 1",
            "ld.atom.dv.sc0 r1, d",
            "rmw.atom.dv.sc0.add r1, y, 1",
            "st.atom.rel.dv.sc0.semsc0 x, 7",
        ]);
        let onlooker = one(&[
            "",
            "ld.atom.acq.dv.sc0.semsc0 r0, x; ld.atom.dv.sc0 r1, d",
            "st.atom.dv.sc0 x, 5",
            "rmw.atom.dv.sc0.add r0, x, 1",
        ]);
        let condition = one(&[
            "P0:r0 == P1:r0",
            "P1:r0 == 0 /\\ P2:r0 == 1",
            "x == 2",
            "~(x == 3)",
            "P2:r0 == 1 /\\ y == 1",
            "P0:r0 == P1:r0 \\/ P0:r0 == P2:r0 \\/ P1:r0 == P2:r0",
            "P2:r0 == 2 /\\ d == 1",
            "P0:r0 < P1:r0",
        ]);
        let filter = one(&["", "", "filter (y == 0)\n", "filter (P0:r0 == 0)\n"]);
        let shape = (3..4usize, proptest::option::of(0..3u32), proptest::bool::ANY);
        (operation, order, before, behind, onlooker, condition, filter, shape).prop_map(
            |(operation, order, before, behind, onlooker, condition, filter, (count, value, together))| {
                let semantics = if order.is_empty() { String::new() } else { format!(".{order}") };
                let class = if order.is_empty() { "" } else { ".semsc0" };
                let (word, operands) = operation.split_once(' ').unwrap();
                let word = if word == "exchange" { String::new() } else { format!(".{word}") };
                let modify = format!("rmw.atom{semantics}.dv.sc0{class}{word} {operands}");
                let branch = value.map(|value| format!("bne r0, {value}, LC00"));
                let end = value.map(|_| "LC00:".to_owned());
                let lines = [Some(before.to_owned()), Some(modify), branch, Some(behind.to_owned()), end];
                let lines: Vec<String> =
                    lines.into_iter().flatten().filter(|line| !line.is_empty()).collect();
                let mut columns: Vec<Vec<String>> = vec![lines; count];
                columns.extend(
                    (!onlooker.is_empty()).then(|| onlooker.split("; ").map(str::to_owned).collect()),
                );
                let height = columns.iter().map(Vec::len).max().unwrap_or(0);
                let heads = (0..columns.len())
                    .map(|id| format!("P{id}@sg 0, wg {}, qf 0", if together { 0 } else { id }));
                let mut text = heads.collect::<Vec<_>>().join(" | ") + " ;\n";
                for row in 0..height {
                    let cells = columns.iter().map(|column| column.get(row).map_or("", String::as_str));
                    text += &(cells.collect::<Vec<_>>().join(" | ") + " ;\n");
                }
                let text = format!(
                    "VULKAN counting\n{{ x = 0; y = 0; d = 0; }}\n{text}{filter}exists ({condition})\n"
                );
                litmus::parse(&text, "counting").unwrap_or_else(|errors| panic!("{text}{errors:?}"))
            },
        )
    }

    /// Threads that count, in their order and by every candidate execution.
    #[test]
    fn threads_that_count() {
        let ways = Ways { few: false, steps: 0, alone: 0, listing: false, ..Ways::USUAL };
        for model in ["vulkan", "tso"] {
            agrees_on(&counting(), model, Ways { in_order: u64::MAX, ..ways });
        }
        agrees_on(&counting(), "vulkan", Ways { in_order: 1, ..ways });
    }

    /// Without scopes that are narrower, and with the same storage classes in all semantics where they are given.
    fn widened(mut test: Test, least: Scope, classes: Option<StorageClassSet>) -> Test {
        let wide = |scope: &mut Scope| *scope = (*scope).max(least);
        let order = |semantics: &mut Semantics| {
            if semantics.order != Order::Relaxed {
                semantics.classes = classes.unwrap_or(semantics.classes);
            }
        };
        for instruction in test.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
            match &mut instruction.kind {
                InstructionKind::Access(access) => {
                    if let AccessKind::Rmw {
                        operation: RmwOperation::CompareExchange { unequal, .. }, ..
                    } = &mut access.kind
                    {
                        order(unequal);
                    }
                    match &mut access.strength {
                        Access::Private | Access::NonPrivate => {}
                        Access::Coherent { scope } => wide(scope),
                        Access::Atomic { scope, semantics } => {
                            wide(scope);
                            order(semantics);
                        }
                    }
                }
                InstructionKind::Fence { scope, semantics } => {
                    wide(scope);
                    order(semantics);
                }
                InstructionKind::ControlBarrier(barrier) => {
                    wide(&mut barrier.memory_scope);
                    barrier.semantics.iter_mut().for_each(order);
                }
                _ => {}
            }
        }
        test.system_sync.clear();
        for thread in &mut test.threads {
            let is_system = |kind: &InstructionKind| matches!(kind, InstructionKind::System(_));
            thread.instructions.retain(|instruction| !is_system(&instruction.kind));
        }
        test
    }

    /// How wide the scopes of a test are, and the storage classes of all semantics where they have to be the same.
    fn width() -> impl Strategy<Value = (Scope, Option<StorageClassSet>)> {
        let classes = (1..4u8).prop_map(|classes| Some(StorageClassSet(classes)));
        let one = (proptest::sample::select(vec![Scope::Workgroup, Scope::QueueFamily]), classes);
        proptest::prop_oneof![one, proptest::prelude::Just((Scope::Device, None))]
    }

    /// Where threads are counts only as far as scopes are as narrow, and control barriers.
    #[test]
    fn places_that_no_scope_names() {
        let options = Options { budget: Budget::UNLIMITED, unroll: 1 };
        let places = proptest::collection::vec((0..2u32, 0..2u32), 3);
        let tests = (random::test(), random::test(), width(), places).prop_map(
            |(test, other, (least, classes), places)| {
                // Longer threads, so that there are chains of several links.
                let mut test = widened(test, least, classes);
                for (thread, more) in test.threads.iter_mut().zip(widened(other, least, classes).threads) {
                    let follows = |kind: &InstructionKind| !matches!(kind, InstructionKind::Flow(_));
                    let more = more.instructions.into_iter().filter(|i| follows(&i.kind));
                    thread.instructions.extend(more);
                }
                let by_workgroup = least > Scope::Workgroup;
                let mut moved = test.clone();
                for (index, (workgroup, subgroup)) in places.into_iter().enumerate() {
                    for test in [&mut test, &mut moved] {
                        let Some(thread) = test.threads.get_mut(index) else { continue };
                        let meets =
                            |kind: &InstructionKind| matches!(kind, InstructionKind::ControlBarrier(_));
                        thread.instructions.retain(|i| !(by_workgroup && meets(&i.kind)));
                    }
                    let Some(Place::Device(place)) = moved.threads.get_mut(index).map(|t| &mut t.place)
                    else {
                        continue;
                    };
                    place.workgroup = if by_workgroup { workgroup } else { place.workgroup };
                    place.subgroup = subgroup;
                }
                (test, moved)
            },
        );
        for name in ["vulkan", "vulkan-nochains", "vulkan-2024", "vulkan-2019", "vulkan-by-letter"] {
            let model = Model::shipped(name).unwrap().unwrap();
            assert!(model.semantic().placed_by_scope);
            let config = Config {
                cases: 300,
                rng_seed: RngSeed::Fixed(7),
                failure_persistence: None,
                ..Config::default()
            };
            let found = TestRunner::new(config).run(&tests, |(test, moved)| {
                let ways = Ways { symmetry: false, listing: false, ..Ways::USUAL };
                let says = |test: &Test| {
                    let said = predict_in(test, &model, &options, ways).unwrap();
                    (said.race, said.meets, said.misses, said.consistent_executions)
                };
                if says(&test) == says(&moved) {
                    Ok(())
                } else {
                    let text = litmus::print(&test) + &litmus::print(&moved);
                    Err(TestCaseError::fail(format!("{:?}\n{:?}\n{text}", says(&test), says(&moved))))
                }
            });
            found.unwrap();
        }
    }

    /// What is found of one order of threads that do the same says nothing of another where the condition tells them apart.
    #[test]
    fn a_condition_that_tells_threads_apart() {
        let columns = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 ;\n\
            rmw.atom.add.dv.sc0 r0, x, 1 | rmw.atom.add.dv.sc0 r0, x, 1 | rmw.atom.add.dv.sc0 r0, x, 1 ;\n\
            bne r0, 0, LC00 | bne r0, 0, LC00 | bne r0, 0, LC00 ;\n\
            st.atom.dv.sc0 y, 1 | st.atom.dv.sc0 y, 1 | st.atom.dv.sc0 y, 1 ;\nLC00: | LC00: | LC00: ;\n";
        let model = Model::shipped("vulkan").unwrap().unwrap();
        let options = Options { budget: Budget::UNLIMITED, unroll: 1 };
        for first in 0..3 {
            let text = format!("VULKAN apart\n{{ x = 0; y = 0; }}\n{columns}exists (P{first}:r0 == 0)\n");
            let test = litmus::parse(&text, "apart").unwrap();
            let said = predict_in(&test, &model, &options, Ways::UNLISTED).unwrap();
            assert_eq!((said.meets, said.misses), (Some(true), Some(true)), "{first}");
        }
    }

    /// Whether threads change places or not, the answers are the same.
    #[test]
    fn threads_that_are_alike() {
        answers_are_the_same(&alike(), 200);
        answers_are_the_same(&counting(), 40);
        answers_are_the_same(
            &(alike(), width()).prop_map(|(test, (least, classes))| widened(test, least, classes)),
            200,
        );
    }

    fn answers_are_the_same(tests: &impl Strategy<Value = Test>, cases: u32) {
        let options = Options { budget: Budget::UNLIMITED, unroll: 1 };
        for name in ["vulkan", "vulkan-2019-nochains", "dartagnan", "sc"] {
            let model = Model::shipped(name).unwrap().unwrap();
            let config =
                Config { cases, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::default() };
            let found = TestRunner::new(config).run(tests, |test| {
                for (steps, in_order, listing) in [(20_000, 0, true), (0, 0, false), (0, 20, false)] {
                    let ways = Ways { few: false, steps, alone: 0, in_order, listing, ..Ways::USUAL };
                    let says = |symmetry| {
                        let prediction =
                            predict_in(&test, &model, &options, Ways { symmetry, ..ways }).unwrap();
                        let counts = (prediction.runs, prediction.cut, prediction.candidate_executions);
                        let race = (prediction.race, prediction.race_thin_air);
                        (prediction.outcomes, race, prediction.meets, prediction.misses, counts)
                    };
                    let (all, alike) = (says(false), says(true));
                    if all != alike {
                        let text = litmus::print(&test);
                        return Err(TestCaseError::fail(format!("{all:?}\n{alike:?}\n{text}")));
                    }
                }
                Ok(())
            });
            found.unwrap();
        }
    }
}
