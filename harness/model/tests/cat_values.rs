//! Random expressions have the same value as with plain sets of pairs, whatever the compiler simplifies.
#![expect(clippy::unwrap_used, reason = "a test may stop at a surprise")]

use model::cat::{self, BaseProvider, CatValue, ClassFamilies, Membership, Vocabulary};
use model::matrix::{Bits, Matrix, Matrix16, Matrix64};
use proptest::prelude::*;
use std::collections::BTreeSet;

const EVENTS: usize = 5;
const SETS: [&str; 3] = ["A", "B", "none"];
const RELATIONS: [&str; 3] = ["r", "s", "never"];
const CLASSES: u8 = 2;

type Events = BTreeSet<usize>;
type Pairs = BTreeSet<(usize, usize)>;

/// An expression for a set or a relation. The value of a set is its identity relation.
#[derive(Clone, Debug)]
enum Expression {
    Name(&'static str),
    Unary(&'static Unary, Box<Expression>),
    Binary(&'static Binary, Box<[Expression; 2]>),
}

/// An operation on one value: its text around that of the operand, and its meaning.
type Unary = ([&'static str; 2], fn(&Pairs) -> Pairs);
/// An operation on two values: its sign, and its meaning.
type Binary = (&'static str, fn(&Pairs, &Pairs) -> Pairs);

// Without context, `~0` is the full relation, not the full set.
const SET_COMPLEMENT: Unary = (["(~(", " | domain(0)))"], |s| without(&identity(), s));
const DOMAIN: Unary = (["domain(", ")"], |r| r.iter().map(|(x, _)| (*x, *x)).collect());
const RANGE: Unary = (["range(", ")"], |r| r.iter().map(|(_, y)| (*y, *y)).collect());
const ON: Unary = (["[", "]"], Pairs::clone);
const COMPLEMENT: Unary = (["(~", ")"], |r| without(&full(), r));
const INVERSE: Unary = (["", "^-1"], |r| r.iter().map(|(x, y)| (*y, *x)).collect());
const PLUS: Unary = (["(", ")+"], plus);
const STAR: Unary = (["(", "*)"], |r| union(&plus(r), &identity()));
const OPTIONAL: Unary = (["(", ")?"], |r| union(r, &identity()));
const IMMEDIATE: Unary = (["imm(", ")"], |r| without(r, &compose(r, &plus(r))));

const UNION: Binary = ("|", union);
const INTERSECTION: Binary = ("&", |a, b| a.intersection(b).copied().collect());
const DIFFERENCE: Binary = ("\\", without);
const SEQUENCE: Binary = (";", compose);
const PRODUCT: Binary = ("*", |a, b| compose(&compose(a, &full()), b));

fn apply_one(operation: &'static Unary) -> impl Fn(Expression) -> Expression + Clone {
    move |operand| Expression::Unary(operation, Box::new(operand))
}

fn apply_two(operation: &'static Binary) -> impl Fn((Expression, Expression)) -> Expression + Clone {
    move |(a, b)| Expression::Binary(operation, Box::new([a, b]))
}

/// The names of sets by their number of classes, each kind as often as the others.
const SET_NAMES: [&str; 15] = [
    "0",
    "0",
    "0",
    "_",
    "_",
    "_",
    "A",
    "B",
    "none",
    "accesses0",
    "accesses1",
    "accesses01",
    "operations0",
    "operations1",
    "operations01",
];

fn sets(relations: &BoxedStrategy<Expression>) -> BoxedStrategy<Expression> {
    let leaf = prop_oneof![
        5 => proptest::sample::select(&SET_NAMES[..]).prop_map(Expression::Name),
        1 => relations.clone().prop_map(apply_one(&DOMAIN)),
        1 => relations.clone().prop_map(apply_one(&RANGE)),
    ];
    leaf.prop_recursive(2, 8, 2, |inner| {
        let two = || (inner.clone(), inner.clone());
        prop_oneof![
            two().prop_map(apply_two(&UNION)),
            two().prop_map(apply_two(&INTERSECTION)),
            two().prop_map(apply_two(&DIFFERENCE)),
            inner.prop_map(apply_one(&SET_COMPLEMENT)),
        ]
    })
    .boxed()
}

fn relation_leaf(recursive: bool) -> BoxedStrategy<Expression> {
    let plain = prop_oneof![
        1 => Just(Expression::Name("0")),
        2 => Just(Expression::Name("id")),
        8 => proptest::sample::select(&RELATIONS[..]).prop_map(Expression::Name),
    ];
    match recursive {
        // The name that `let rec` defines.
        true => prop_oneof![2 => plain, 1 => Just(Expression::Name("defined"))].boxed(),
        false => plain.boxed(),
    }
}

/// Expressions of every form; in a recursive definition, only monotone ones.
fn relations(recursive: bool) -> BoxedStrategy<Expression> {
    relation_leaf(recursive)
        .prop_recursive(4, 24, 2, move |inner| {
            let two = || (inner.clone(), inner.clone());
            let constant = relation_leaf(false);
            let set = || sets(&constant);
            let monotone = prop_oneof![
                set().prop_map(apply_one(&ON)),
                (set(), set()).prop_map(apply_two(&PRODUCT)),
                two().prop_map(apply_two(&UNION)),
                two().prop_map(apply_two(&INTERSECTION)),
                two().prop_map(apply_two(&SEQUENCE)),
                (inner.clone(), constant.clone()).prop_map(apply_two(&DIFFERENCE)),
                inner.clone().prop_map(apply_one(&INVERSE)),
                inner.clone().prop_map(apply_one(&PLUS)),
                inner.clone().prop_map(apply_one(&STAR)),
                inner.clone().prop_map(apply_one(&OPTIONAL)),
            ];
            if recursive {
                return monotone.boxed();
            }
            prop_oneof![
                8 => monotone,
                1 => two().prop_map(apply_two(&DIFFERENCE)),
                1 => inner.clone().prop_map(apply_one(&COMPLEMENT)),
                1 => inner.clone().prop_map(apply_one(&IMMEDIATE)),
                // The forms that simplifications match are rarely drawn otherwise.
                1 => inner.clone().prop_map(|r| {
                    let longer = apply_two(&SEQUENCE)((r.clone(), apply_one(&PLUS)(r.clone())));
                    apply_two(&DIFFERENCE)((r, longer))
                }),
                1 => inner.clone().prop_map(|r| apply_two(&SEQUENCE)((apply_one(&STAR)(r.clone()), r))),
            ]
            .boxed()
        })
        .boxed()
}

fn union(a: &Pairs, b: &Pairs) -> Pairs {
    a.union(b).copied().collect()
}

fn without(a: &Pairs, b: &Pairs) -> Pairs {
    a.difference(b).copied().collect()
}

fn compose(r: &Pairs, s: &Pairs) -> Pairs {
    r.iter().flat_map(|(x, y)| s.iter().filter(move |(z, _)| y == z).map(move |(_, z)| (*x, *z))).collect()
}

fn plus(r: &Pairs) -> Pairs {
    let mut closure = r.clone();
    loop {
        let longer = union(&closure, &compose(&closure, r));
        if longer == closure {
            return closure;
        }
        closure = longer;
    }
}

fn full() -> Pairs {
    (0..EVENTS).flat_map(|x| (0..EVENTS).map(move |y| (x, y))).collect()
}

fn identity() -> Pairs {
    (0..EVENTS).map(|x| (x, x)).collect()
}

impl Expression {
    fn text(&self) -> String {
        match self {
            Expression::Name(name) => (*name).to_owned(),
            Expression::Unary(([before, after], _), operand) => format!("{before}{}{after}", operand.text()),
            Expression::Binary((sign, _), pair) => format!("({} {sign} {})", pair[0].text(), pair[1].text()),
        }
    }

    /// Returns true if the expression has `r` and no other base.
    fn mentions_only_first(&self) -> bool {
        let text = self.text();
        let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        text.contains('r') && words.all(|word| matches!(word, "r" | "id" | "domain" | "range" | "imm" | "1"))
    }

    fn value(&self, world: &World, defined: &Pairs) -> Pairs {
        match self {
            Expression::Name("defined") => defined.clone(),
            Expression::Name(name) => world.value_of(name),
            Expression::Unary((_, value), operand) => value(&operand.value(world, defined)),
            Expression::Binary((_, value), pair) => {
                value(&pair[0].value(world, defined), &pair[1].value(world, defined))
            }
        }
    }
}

/// The base sets and relations of one execution. The last set and the last relation are known to be empty.
#[derive(Clone, Debug)]
struct World {
    sets: [Events; 3],
    relations: [Pairs; 3],
    /// For each event, the class of its access and the classes of its semantics.
    classes: Vec<(Option<u8>, u8)>,
}

impl World {
    fn value_of(&self, name: &str) -> Pairs {
        let classes = |digits: &str| digits.bytes().fold(0, |mask, class| mask | 1 << (class - b'0'));
        if let Some(index) = RELATIONS.iter().position(|known| *known == name) {
            return self.relations[index].clone();
        }
        let events = if let Some(digits) = name.strip_prefix("accesses") {
            self.accesses(classes(digits))
        } else if let Some(digits) = name.strip_prefix("operations") {
            self.operations(classes(digits))
        } else {
            match (name, SETS.iter().position(|known| *known == name)) {
                (_, Some(index)) => self.sets[index].clone(),
                ("0", None) => Events::new(),
                _ => (0..EVENTS).collect(),
            }
        };
        events.into_iter().map(|event| (event, event)).collect()
    }

    fn accesses(&self, classes: u8) -> Events {
        let matches = |class: &Option<u8>| class.is_some_and(|class| classes & (1 << class) != 0);
        (0..EVENTS).filter(|event| matches(&self.classes[*event].0)).collect()
    }

    fn operations(&self, classes: u8) -> Events {
        (0..EVENTS).filter(|event| self.classes[*event].1 & classes == classes).collect()
    }

    fn used_classes(&self) -> Vec<u8> {
        let used = |class: &u8| {
            self.classes
                .iter()
                .any(|(access, semantics)| *access == Some(*class) || semantics & (1 << class) != 0)
        };
        (0..CLASSES).filter(used).collect()
    }
}

fn worlds() -> impl Strategy<Value = World> {
    let set = || proptest::collection::btree_set(0..EVENTS, 0..EVENTS);
    let relation = || proptest::collection::btree_set((0..EVENTS, 0..EVENTS), 0..8);
    let class = (proptest::option::of(0..CLASSES), 0..4_u8);
    // In one world of three, one class does not occur.
    let hidden = proptest::option::weighted(0.33, 0..CLASSES);
    (set(), set(), relation(), relation(), proptest::collection::vec(class, EVENTS), hidden).prop_map(
        |(a, b, r, s, mut classes, hidden)| {
            for (access, semantics) in &mut classes {
                if let Some(hidden) = hidden {
                    *access = access.filter(|class| *class != hidden);
                    *semantics &= !(1 << hidden);
                }
            }
            World { sets: [a, b, Events::new()], relations: [r, s, Pairs::new()], classes }
        },
    )
}

impl<M: Matrix> BaseProvider<M> for World {
    fn base_set(&self, name: &str, mask: Option<u8>) -> Option<M::Set> {
        let events = match (name, mask) {
            ("SC", Some(mask)) => self.accesses(mask),
            ("SEM", Some(mask)) => self.operations(mask),
            _ => self.sets[SETS.iter().position(|known| *known == name)?].clone(),
        };
        Some(M::Set::from_events(events))
    }

    fn base_relation(&self, name: &str, _: Option<u8>) -> Option<M> {
        let index = RELATIONS.iter().position(|known| *known == name)?;
        Some(M::from_pairs(EVENTS, self.relations[index].iter().copied()))
    }
}

/// Evaluates definitions in a model.
fn values<M: Matrix>(text: &str, world: &World, names: &[&str]) -> Vec<Pairs> {
    let header = "let accesses0 = SC0 let accesses1 = SC1 let accesses01 = SC0 | SC1\n\
                  let operations0 = SEM0 let operations1 = SEM1 let operations01 = SEM0 & SEM1\n";
    let model = cat::parse_model("random.cat", &format!("{header}{text}"), &|_| None).unwrap();
    let vocabulary = Vocabulary::new()
        .with_sets(SETS)
        .with_relations(RELATIONS)
        .with_indexed_set("SC", Membership::Any, CLASSES)
        .with_indexed_set("SEM", Membership::All, CLASSES)
        .with_rank("s", 1);
    let absent = vec!["none".to_owned(), "never".to_owned()];
    let families = ClassFamilies { absent, ..ClassFamilies::from_classes(world.used_classes()) };
    let plan = cat::compile(&model, &vocabulary, &families).unwrap();
    let values = cat::evaluate_model::<M>(&plan, world, EVENTS).unwrap();
    let pairs = |name: &&str| match &values[plan.find_definition(name).unwrap().to_index()] {
        CatValue::Relation(relation) => relation.pairs().collect(),
        CatValue::Set(set) => set.iter().map(|event| (event, event)).collect(),
    };
    names.iter().map(pairs).collect()
}

fn value<M: Matrix>(text: &str, world: &World, name: &str) -> Pairs {
    values::<M>(text, world, &[name]).remove(0)
}

fn apply_all(operands: &[Expression]) -> Vec<Expression> {
    let mut results = apply_unary(operands);
    results.extend(apply_binary(operands, operands));
    results
}

fn apply_unary(operands: &[Expression]) -> Vec<Expression> {
    let of_operand = |operand: &Expression| {
        let operations = [&COMPLEMENT, &INVERSE, &PLUS, &STAR, &OPTIONAL, &IMMEDIATE];
        let simple = operations.map(|operation| apply_one(operation)(operand.clone()));
        let ends = [&DOMAIN, &RANGE].map(|end| apply_one(&ON)(apply_one(end)(operand.clone())));
        simple.into_iter().chain(ends)
    };
    operands.iter().flat_map(of_operand).collect()
}

/// Returns every binary operation on an operand of the first list and one of the second.
fn apply_binary(left: &[Expression], right: &[Expression]) -> Vec<Expression> {
    let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
    let of_pair = |(a, b): (&Expression, &Expression)| {
        let operations = [&UNION, &INTERSECTION, &DIFFERENCE, &SEQUENCE];
        operations.map(|operation| apply_two(operation)((a.clone(), b.clone())))
    };
    pairs.flat_map(of_pair).collect()
}

/// The forms that simplifications match are rarely drawn, so this test tries all small expressions.
#[test]
fn small_expressions() {
    let name = Expression::Name;
    let product = apply_two(&PRODUCT);
    let mut leaves = ["0", "id", "r", "s"].map(name).to_vec();
    leaves.extend([
        apply_one(&ON)(name("A")),
        apply_one(&ON)(apply_one(&SET_COMPLEMENT)(name("B"))),
        product((name("A"), name("B"))),
        product((name("_"), name("_"))),
    ]);
    let small = apply_all(&leaves);
    // Every operation on one small operand, and every pair of a small operand and a leaf.
    let mut expressions = small.clone();
    expressions.extend(apply_unary(&small));
    expressions.extend(apply_binary(&small, &leaves));
    expressions.extend(apply_binary(&leaves, &small));
    let around_r: Vec<Expression> = small.iter().filter(|e| e.mentions_only_first()).cloned().collect();
    expressions.extend(apply_all(&around_r));
    let worlds = [
        (&[0, 1][..], &[1, 2, 4][..], &[(0, 1), (1, 2), (2, 3), (4, 4)][..], &[(1, 0), (2, 1), (3, 0)][..]),
        (&[2][..], &[0, 2][..], &[(0, 0), (0, 2), (2, 0), (3, 1)][..], &[(2, 2), (1, 3), (0, 2), (4, 0)][..]),
    ];
    for (a, b, r, s) in worlds {
        let world = World {
            sets: [a.iter().copied().collect(), b.iter().copied().collect(), Events::new()],
            relations: [r.iter().copied().collect(), s.iter().copied().collect(), Pairs::new()],
            classes: vec![(None, 0); EVENTS],
        };
        for some in expressions.chunks(500) {
            let names: Vec<String> = (0..some.len()).map(|index| format!("x{index}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let text: String = names
                .iter()
                .zip(some)
                .map(|(name, expression)| format!("let {name} = {} | (0 & r)\n", expression.text()))
                .collect();
            for (expression, found) in some.iter().zip(values::<Matrix16>(&text, &world, &names)) {
                assert_eq!(found, expression.value(&world, &Pairs::new()), "{}", expression.text());
            }
        }
    }
    assert!(expressions.len() > 15_000, "only {} expressions", expressions.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expressions(expression in relations(false), world in worlds()) {
        let text = format!("let x = {} | (0 & r)", expression.text());
        let expected = expression.value(&world, &Pairs::new());
        prop_assert_eq!(value::<Matrix16>(&text, &world, "x"), expected.clone(), "{}", text);
        prop_assert_eq!(value::<Matrix64>(&text, &world, "x"), expected, "{}", text);
    }

    #[test]
    fn recursive_definitions(
        first in relations(true),
        second in relations(true),
        after in relations(false),
        world in worlds(),
    ) {
        let text = format!(
            "let rec defined = {} | other; defined and other = {}\nlet x = ({}) | defined; other",
            first.text(), second.text(), after.text(),
        );
        let (mut defined, mut other) = (Pairs::new(), Pairs::new());
        loop {
            let grown = first.value(&world, &defined).union(&compose(&other, &defined)).copied().collect();
            let other_grown = second.value(&world, &defined);
            if grown == defined && other_grown == other {
                break;
            }
            (defined, other) = (grown, other_grown);
        }
        let expected = after.value(&world, &defined).union(&compose(&defined, &other)).copied().collect::<Pairs>();
        prop_assert_eq!(value::<Matrix16>(&text, &world, "defined"), defined, "{}", text);
        prop_assert_eq!(value::<Matrix64>(&text, &world, "other"), other, "{}", text);
        prop_assert_eq!(value::<Matrix16>(&text, &world, "x"), expected, "{}", text);
    }
}
