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

#[derive(Clone, Debug)]
enum SetExpression {
    Zero,
    Universe,
    Base(usize),
    Accesses(u8),
    Operations(u8),
    Union(Box<[SetExpression; 2]>),
    Intersection(Box<[SetExpression; 2]>),
    Difference(Box<[SetExpression; 2]>),
    Complement(Box<SetExpression>),
    Domain(Box<Expression>),
    Range(Box<Expression>),
}

/// An expression for a relation.
#[derive(Clone, Debug)]
enum Expression {
    Zero,
    Identity,
    Base(usize),
    /// The name that `let rec` defines.
    Recursive,
    On(Box<SetExpression>),
    Product(Box<[SetExpression; 2]>),
    Union(Box<[Expression; 2]>),
    Intersection(Box<[Expression; 2]>),
    Difference(Box<[Expression; 2]>),
    Sequence(Box<[Expression; 2]>),
    Complement(Box<Expression>),
    Inverse(Box<Expression>),
    Plus(Box<Expression>),
    Star(Box<Expression>),
    Optional(Box<Expression>),
    Immediate(Box<Expression>),
}

fn sets(relations: BoxedStrategy<Expression>) -> BoxedStrategy<SetExpression> {
    let leaf = prop_oneof![
        Just(SetExpression::Zero),
        Just(SetExpression::Universe),
        (0..SETS.len()).prop_map(SetExpression::Base),
        (1..4_u8).prop_map(SetExpression::Accesses),
        (1..4_u8).prop_map(SetExpression::Operations),
        relations.clone().prop_map(|r| SetExpression::Domain(Box::new(r))),
        relations.prop_map(|r| SetExpression::Range(Box::new(r))),
    ];
    leaf.prop_recursive(2, 8, 2, |inner| {
        let two = || (inner.clone(), inner.clone()).prop_map(|(a, b)| Box::new([a, b]));
        prop_oneof![
            two().prop_map(SetExpression::Union),
            two().prop_map(SetExpression::Intersection),
            two().prop_map(SetExpression::Difference),
            inner.prop_map(|a| SetExpression::Complement(Box::new(a))),
        ]
    })
    .boxed()
}

fn relation_leaf(recursive: bool) -> BoxedStrategy<Expression> {
    let plain = prop_oneof![
        1 => Just(Expression::Zero),
        2 => Just(Expression::Identity),
        8 => (0..RELATIONS.len()).prop_map(Expression::Base),
    ];
    if recursive { prop_oneof![2 => plain, 1 => Just(Expression::Recursive)].boxed() } else { plain.boxed() }
}

/// Expressions of every form; in a recursive definition, only monotone ones.
fn relations(recursive: bool) -> BoxedStrategy<Expression> {
    relation_leaf(recursive)
        .prop_recursive(4, 24, 2, move |inner| {
            let two = || (inner.clone(), inner.clone()).prop_map(|(a, b)| Box::new([a, b]));
            let one = || inner.clone().prop_map(Box::new);
            let constant = relation_leaf(false);
            let set = || sets(relation_leaf(false));
            let monotone = prop_oneof![
                set().prop_map(|s| Expression::On(Box::new(s))),
                (set(), set()).prop_map(|(a, b)| Expression::Product(Box::new([a, b]))),
                two().prop_map(Expression::Union),
                two().prop_map(Expression::Intersection),
                two().prop_map(Expression::Sequence),
                (inner.clone(), constant).prop_map(|(a, b)| Expression::Difference(Box::new([a, b]))),
                one().prop_map(Expression::Inverse),
                one().prop_map(Expression::Plus),
                one().prop_map(Expression::Star),
                one().prop_map(Expression::Optional),
            ];
            if recursive {
                monotone.boxed()
            } else {
                prop_oneof![
                    8 => monotone,
                    1 => two().prop_map(Expression::Difference),
                    1 => one().prop_map(Expression::Complement),
                    1 => one().prop_map(Expression::Immediate),
                    // The forms that simplifications match are rarely drawn otherwise.
                    1 => one().prop_map(|r| {
                        let closure = Expression::Plus(r.clone());
                        let longer = Expression::Sequence(Box::new([(*r).clone(), closure]));
                        Expression::Difference(Box::new([*r, longer]))
                    }),
                    1 => one().prop_map(|r| {
                        let star = Expression::Star(r.clone());
                        Expression::Sequence(Box::new([star, *r]))
                    }),
                ]
                .boxed()
            }
        })
        .boxed()
}

fn mask_text(mask: u8) -> String {
    let classes: Vec<String> =
        (0..CLASSES).filter(|class| mask & (1 << class) != 0).map(|c| c.to_string()).collect();
    classes.concat()
}

impl SetExpression {
    fn text(&self) -> String {
        match self {
            SetExpression::Zero => "0".into(),
            SetExpression::Universe => "_".into(),
            SetExpression::Base(index) => SETS[*index].into(),
            SetExpression::Accesses(classes) => format!("accesses{}", mask_text(*classes)),
            SetExpression::Operations(classes) => format!("operations{}", mask_text(*classes)),
            SetExpression::Union(pair) => format!("({} | {})", pair[0].text(), pair[1].text()),
            SetExpression::Intersection(pair) => format!("({} & {})", pair[0].text(), pair[1].text()),
            SetExpression::Difference(pair) => format!("({} \\ {})", pair[0].text(), pair[1].text()),
            // Without context, `~0` is the full relation, not the full set.
            SetExpression::Complement(inner) => format!("(~({} | domain(0)))", inner.text()),
            SetExpression::Domain(inner) => format!("domain({})", inner.text()),
            SetExpression::Range(inner) => format!("range({})", inner.text()),
        }
    }

    fn value(&self, world: &World, defined: &Pairs) -> Events {
        let both = |pair: &[SetExpression; 2]| (pair[0].value(world, defined), pair[1].value(world, defined));
        match self {
            SetExpression::Zero => Events::new(),
            SetExpression::Universe => (0..EVENTS).collect(),
            SetExpression::Base(index) => world.sets[*index].clone(),
            SetExpression::Accesses(classes) => world.accesses(*classes),
            SetExpression::Operations(classes) => world.operations(*classes),
            SetExpression::Union(pair) => both(pair).0.union(&both(pair).1).copied().collect(),
            SetExpression::Intersection(pair) => both(pair).0.intersection(&both(pair).1).copied().collect(),
            SetExpression::Difference(pair) => both(pair).0.difference(&both(pair).1).copied().collect(),
            SetExpression::Complement(inner) => {
                let inner = inner.value(world, defined);
                (0..EVENTS).filter(|event| !inner.contains(event)).collect()
            }
            SetExpression::Domain(inner) => inner.value(world, defined).iter().map(|(x, _)| *x).collect(),
            SetExpression::Range(inner) => inner.value(world, defined).iter().map(|(_, y)| *y).collect(),
        }
    }
}

fn compose(r: &Pairs, s: &Pairs) -> Pairs {
    r.iter().flat_map(|(x, y)| s.iter().filter(move |(z, _)| y == z).map(move |(_, z)| (*x, *z))).collect()
}

fn plus(r: &Pairs) -> Pairs {
    let mut closure = r.clone();
    loop {
        let longer: Pairs = closure.union(&compose(&closure, r)).copied().collect();
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
        let two =
            |pair: &[Expression; 2], sign: &str| format!("({} {sign} {})", pair[0].text(), pair[1].text());
        match self {
            Expression::Zero => "0".into(),
            Expression::Identity => "id".into(),
            Expression::Base(index) => RELATIONS[*index].into(),
            Expression::Recursive => "defined".into(),
            Expression::On(set) => format!("[{}]", set.text()),
            Expression::Product(pair) => format!("({} * {})", pair[0].text(), pair[1].text()),
            Expression::Union(pair) => two(pair, "|"),
            Expression::Intersection(pair) => two(pair, "&"),
            Expression::Difference(pair) => two(pair, "\\"),
            Expression::Sequence(pair) => two(pair, ";"),
            Expression::Complement(inner) => format!("(~{})", inner.text()),
            Expression::Inverse(inner) => format!("{}^-1", inner.text()),
            Expression::Plus(inner) => format!("({})+", inner.text()),
            Expression::Star(inner) => format!("({}*)", inner.text()),
            Expression::Optional(inner) => format!("({})?", inner.text()),
            Expression::Immediate(inner) => format!("imm({})", inner.text()),
        }
    }

    /// Returns true if the expression has `r` and no other base.
    fn mentions_only_first(&self) -> bool {
        let text = self.text();
        let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        text.contains('r') && words.all(|word| matches!(word, "r" | "id" | "domain" | "range" | "imm" | "1"))
    }

    fn value(&self, world: &World, defined: &Pairs) -> Pairs {
        let value = |inner: &Expression| inner.value(world, defined);
        match self {
            Expression::Zero => Pairs::new(),
            Expression::Identity => identity(),
            Expression::Base(index) => world.relations[*index].clone(),
            Expression::Recursive => defined.clone(),
            Expression::On(set) => set.value(world, defined).iter().map(|x| (*x, *x)).collect(),
            Expression::Product(pair) => {
                let (sources, targets) = (pair[0].value(world, defined), pair[1].value(world, defined));
                full().into_iter().filter(|(x, y)| sources.contains(x) && targets.contains(y)).collect()
            }
            Expression::Union(pair) => value(&pair[0]).union(&value(&pair[1])).copied().collect(),
            Expression::Intersection(pair) => {
                value(&pair[0]).intersection(&value(&pair[1])).copied().collect()
            }
            Expression::Difference(pair) => value(&pair[0]).difference(&value(&pair[1])).copied().collect(),
            Expression::Sequence(pair) => compose(&value(&pair[0]), &value(&pair[1])),
            Expression::Complement(inner) => full().difference(&value(inner)).copied().collect(),
            Expression::Inverse(inner) => value(inner).iter().map(|(x, y)| (*y, *x)).collect(),
            Expression::Plus(inner) => plus(&value(inner)),
            Expression::Star(inner) => plus(&value(inner)).union(&identity()).copied().collect(),
            Expression::Optional(inner) => value(inner).union(&identity()).copied().collect(),
            Expression::Immediate(inner) => {
                let r = value(inner);
                r.difference(&compose(&r, &plus(&r))).copied().collect()
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
    let mut results = Vec::new();
    for operand in operands {
        let one = || Box::new(operand.clone());
        results.extend([
            Expression::Complement(one()),
            Expression::Inverse(one()),
            Expression::Plus(one()),
            Expression::Star(one()),
            Expression::Optional(one()),
            Expression::Immediate(one()),
            Expression::On(Box::new(SetExpression::Domain(one()))),
            Expression::On(Box::new(SetExpression::Range(one()))),
        ]);
    }
    results
}

/// Returns every binary operation on an operand of the first list and one of the second.
fn apply_binary(left: &[Expression], right: &[Expression]) -> Vec<Expression> {
    let two = |a: &Expression, b: &Expression| Box::new([a.clone(), b.clone()]);
    left.iter()
        .flat_map(|a| right.iter().map(move |b| (a, b)))
        .flat_map(|(a, b)| {
            [
                Expression::Union(two(a, b)),
                Expression::Intersection(two(a, b)),
                Expression::Difference(two(a, b)),
                Expression::Sequence(two(a, b)),
            ]
        })
        .collect()
}

/// The forms that simplifications match are rarely drawn, so this test tries all small expressions.
#[test]
fn small_expressions() {
    let base = |index| SetExpression::Base(index);
    let leaves = [
        Expression::Zero,
        Expression::Identity,
        Expression::Base(0),
        Expression::Base(1),
        Expression::On(Box::new(base(0))),
        Expression::On(Box::new(SetExpression::Complement(Box::new(base(1))))),
        Expression::Product(Box::new([base(0), base(1)])),
        Expression::Product(Box::new([SetExpression::Universe, SetExpression::Universe])),
    ];
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
