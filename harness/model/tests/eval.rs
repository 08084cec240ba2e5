//! Evaluates each `tests/eval/*.cat` on the small execution in its comments, with every matrix type.
//!
//! ```text
//! // events 4                        the events 0 … 3
//! // set W = 0 2                     a base set
//! // set SEM(01) = 1                 an indexed base set at the classes 0 and 1; unlisted masks are empty
//! // relation po = 0-1 1-2           a base relation
//! // classes 0 1                     classes of the program; `masks` are their non-empty subsets
//! // absent ssw                      a base that is known to be empty
//! // include NAME = TEXT             what `include "NAME"` gives
//! // expect hb = 0-1 0-2             the value of a definition
//! // expect axiom order holds        or `broken`; for a flag `raised` or `lowered`
//! // expect node hb order            both names are one node of the plan
//! // expect nodes 3                  the size of the plan
//! ```
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise")]

use model::cat::{self, BaseProvider, CatValue, ClassFamilies, Membership, Vocabulary};
use model::matrix::{Bits, Matrix, Matrix16, Matrix32, Matrix64, Matrix256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[derive(Default)]
struct Fixture {
    n: usize,
    sets: BTreeMap<(String, Option<u8>), Vec<usize>>,
    relations: BTreeMap<String, Vec<(usize, usize)>>,
    classes: Vec<u8>,
    absent: Vec<String>,
    includes: BTreeMap<String, String>,
    expected: Vec<(String, String)>,
    axioms: Vec<(String, String)>,
    shared: Vec<(String, String)>,
    nodes: Option<usize>,
}

fn numbers(text: &str) -> Vec<usize> {
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

fn pairs(text: &str) -> Vec<(usize, usize)> {
    let pair = |word: &str| {
        let (source, target) = word.split_once('-').unwrap();
        (source.parse().unwrap(), target.parse().unwrap())
    };
    text.split_whitespace().map(pair).collect()
}

fn mask(digits: &str) -> u8 {
    digits.bytes().map(|digit| 1 << (digit - b'0')).sum()
}

impl Fixture {
    fn parse_fixture(text: &str) -> Fixture {
        let mut fixture = Fixture::default();
        for line in text.lines().filter_map(|line| line.strip_prefix("// ")) {
            let (word, rest) = line.split_once(' ').unwrap();
            let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
            let name = name.trim().to_owned();
            match word {
                "events" => fixture.n = rest.trim().parse().unwrap(),
                "set" => {
                    let key = match name.split_once('(') {
                        Some((set, digits)) => (set.to_owned(), Some(mask(digits.trim_end_matches(')')))),
                        None => (name, None),
                    };
                    fixture.sets.insert(key, numbers(value));
                }
                "relation" => {
                    fixture.relations.insert(name, pairs(value));
                }
                "classes" => fixture.classes = numbers(rest).into_iter().map(|c| c as u8).collect(),
                "absent" => fixture.absent.extend(rest.split_whitespace().map(str::to_owned)),
                "include" => {
                    fixture.includes.insert(name, value.trim().to_owned());
                }
                "expect" => match rest.split_whitespace().collect::<Vec<_>>().as_slice() {
                    ["axiom", name, outcome] => {
                        fixture.axioms.push(((*name).to_owned(), (*outcome).to_owned()));
                    }
                    ["node", first, second] => {
                        fixture.shared.push(((*first).to_owned(), (*second).to_owned()));
                    }
                    ["nodes", count] => fixture.nodes = Some(count.parse().unwrap()),
                    _ => fixture.expected.push((name, value.trim().to_owned())),
                },
                other => panic!("unknown directive {other}"),
            }
        }
        assert!(fixture.n > 0, "no events");
        assert!(!fixture.expected.is_empty() || !fixture.axioms.is_empty(), "nothing expected");
        fixture
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary::new()
            .with_sets(self.sets.keys().filter(|(_, mask)| mask.is_none()).map(|(name, _)| name.as_str()))
            .with_relations(self.relations.keys().map(String::as_str))
            .with_indexed_set("SC", Membership::Any, 4)
            .with_indexed_set("SEM", Membership::All, 4)
            .with_class_names("SEMSC", "SEM", 4)
    }
}

impl<M: Matrix> BaseProvider<M> for Fixture {
    fn base_set(&self, name: &str, mask: Option<u8>) -> Option<M::Set> {
        let events = self.sets.get(&(name.to_owned(), mask));
        match mask {
            Some(_) => Some(M::Set::from_events(events.into_iter().flatten().copied())),
            None => events.map(|events| M::Set::from_events(events.iter().copied())),
        }
    }

    fn base_relation(&self, name: &str, _: Option<u8>) -> Option<M> {
        self.relations.get(name).map(|pairs| M::from_pairs(self.n, pairs.iter().copied()))
    }
}

fn value_text<M: Matrix>(value: &CatValue<M>) -> String {
    let words: Vec<String> = match value {
        CatValue::Set(set) => set.iter().map(|event| event.to_string()).collect(),
        CatValue::Relation(relation) => relation.pairs().map(|(x, y)| format!("{x}-{y}")).collect(),
    };
    words.join(" ")
}

fn check_values<M: Matrix>(path: &Path, fixture: &Fixture, plan: &cat::CompiledModel) {
    let values = cat::evaluate_model::<M>(plan, fixture, fixture.n).unwrap();
    for (name, expected) in &fixture.expected {
        let node =
            plan.find_definition(name).unwrap_or_else(|| panic!("{}: no definition {name}", path.display()));
        assert_eq!(value_text(&values[node.to_index()]), *expected, "{}: {name}", path.display());
    }
    for (name, expected) in &fixture.axioms {
        let axiom = plan.axioms.iter().find(|axiom| axiom.name.as_ref() == Some(name)).unwrap();
        let holds = cat::axiom_holds(axiom, &values[axiom.node.to_index()]);
        let outcome = match (axiom.is_flag, holds) {
            (false, true) => "holds",
            (false, false) => "broken",
            (true, true) => "raised",
            (true, false) => "lowered",
        };
        assert_eq!(outcome, expected, "{}: axiom {name}", path.display());
    }
}

/// Operands come first, groups are contiguous, and no node occurs twice.
fn check_order(plan: &cat::CompiledModel) {
    for (index, node) in plan.nodes.iter().enumerate() {
        assert!(node.operand_nodes().all(|operand| operand.to_index() < index));
        assert!(!plan.nodes[..index].contains(node));
    }
    for group in &plan.groups {
        assert!(group.bodies.iter().all(|body| body.0 < group.nodes.end));
    }
    assert_eq!(plan.nodes.len(), plan.origins.len());
    assert!(
        plan.mark_needed(plan.definitions.iter().map(|definition| definition.node)).len() == plan.nodes.len()
    );
}

#[test]
fn evaluation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/eval");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(path.extension().unwrap(), "cat", "{}: not a cat file", path.display());
        let text = fs::read_to_string(&path).unwrap();
        let fixture = Fixture::parse_fixture(&text);
        let resolve = |name: &str| fixture.includes.get(name).cloned();
        let name = path.file_name().unwrap().to_str().unwrap();
        let model =
            cat::parse_model(name, &text, &resolve).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        let families = ClassFamilies {
            absent: fixture.absent.clone(),
            ..ClassFamilies::from_classes(fixture.classes.clone())
        };
        let plan = cat::compile(&model, &fixture.vocabulary(), &families)
            .unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        check_order(&plan);
        if let Some(nodes) = fixture.nodes {
            assert_eq!(plan.nodes.len(), nodes, "{name}: {:#?}", plan.nodes);
        }
        for (first, second) in &fixture.shared {
            assert_eq!(
                plan.find_definition(first).unwrap(),
                plan.find_definition(second).unwrap(),
                "{name}: {first}"
            );
        }
        check_values::<Matrix16>(&path, &fixture, &plan);
        check_values::<Matrix32>(&path, &fixture, &plan);
        check_values::<Matrix64>(&path, &fixture, &plan);
        check_values::<Matrix256>(&path, &fixture, &plan);
        count += 1;
    }
    assert!(count >= 12, "only {count} files");
}
