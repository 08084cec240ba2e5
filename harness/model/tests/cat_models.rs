//! Complete models: options, cited clauses, and Dartagnan's dialect.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise")]

use crate::vocabulary;

use model::cat::options::{
    AsmoOrder, BarrierReach, CandidateValues, CoveredEvents, CoveredInstructions, FinalValueRule,
    InitialWrites, MemoryOrders, ModelOptions, RmwEvents, TangleRule, TestLanguage,
};
use model::cat::{self, CatErrors, CatModel, ClassFamilies, CompiledModel};
use proptest::prelude::*;
use std::fmt::Write;

fn parse(text: &str) -> Result<CatModel, CatErrors> {
    cat::parse_model("model.cat", text, &|_| None)
}

fn compile(model: &CatModel, families: &ClassFamilies) -> CompiledModel {
    cat::compile(model, &vocabulary::vulkan(), families)
        .unwrap_or_else(|errors| panic!("{:?}", errors.errors.first()))
}

/// Lists one node per line, for snapshots.
fn list_nodes(plan: &CompiledModel) -> String {
    let mut text = String::new();
    for (index, node) in plan.nodes.iter().enumerate() {
        let line = plan.statement_at(plan.origins[index]).span.line;
        let node_text = match node {
            cat::PlanNode::BaseSet(base) | cat::PlanNode::BaseRelation(base) => match base.mask {
                Some(mask) => format!("{}({mask:#06b})", plan.name_text(base.name)),
                None => plan.name_text(base.name).to_owned(),
            },
            cat::PlanNode::Recursive { group, index, node_kind: kind } => {
                format!("Recursive {kind:?} {}.{index}", group.0)
            }
            node => {
                let debug = format!("{node:?}");
                let operator = debug.split('(').next().unwrap_or_default().to_owned();
                node.operand_nodes().fold(operator, |shown, operand| format!("{shown} {}", operand.0))
            }
        };
        writeln!(text, "{index:3} {node_text}  -- line {line}").unwrap();
    }
    for group in &plan.groups {
        writeln!(text, "group {:?} {:?}", group.nodes, group.bodies).unwrap();
    }
    for axiom in &plan.axioms {
        let negation = if axiom.negated { "not " } else { "" };
        let flag = if axiom.is_flag { "flag " } else { "" };
        let name = axiom.name.as_deref().unwrap_or("unnamed");
        writeln!(text, "{flag}{negation}{:?} {} as {name}", axiom.kind, axiom.node.0).unwrap();
    }
    text
}

#[test]
fn dartagnan_style() {
    let model = parse(include_str!("cat_models/dartagnan-style.cat")).unwrap();
    assert_eq!(model.name.as_deref(), Some("GPU-style"));
    assert_eq!(model.options, ModelOptions::default());
    insta::assert_snapshot!(list_nodes(&compile(&model, &ClassFamilies::from_classes([0, 1]))));
    // With one class, the orders of the other class are removed.
    let one = compile(&model, &ClassFamilies::from_classes([0]));
    let two = compile(&model, &ClassFamilies::from_classes([0, 1]));
    assert!(one.nodes.len() < two.nodes.len());
}

#[test]
fn options_of_the_first_comment() {
    let all = "(* options: rmw=fused init=per-location barrier=any asmo=transitive final=device-read\n \
               values=no-thin-air tests=hsa events=all tangles=apart orders=seq-cst
               instructions=wgsl *)\nacyclic po as order";
    let chosen = ModelOptions {
        rmw: RmwEvents::Fused,
        init: InitialWrites::PerLocation,
        barrier: BarrierReach::Any,
        asmo: AsmoOrder::Transitive,
        final_value: FinalValueRule::DeviceRead,
        values: CandidateValues::NoThinAir,
        language: TestLanguage::Hsa,
        events: CoveredEvents::All,
        tangle_rule: TangleRule::Apart,
        orders: MemoryOrders::Sequential,
        instructions: CoveredInstructions::Wgsl,
    };
    assert_eq!(parse(all).unwrap().options, chosen);
    let dartagnan =
        "NAME (*options: rmw=split init=per-name barrier=workgroup asmo=plain final=co values=free*)";
    assert_eq!(parse(dartagnan).unwrap().options, ModelOptions::default());
    assert_eq!(parse("acyclic po").unwrap().options, ModelOptions::default());
    assert_eq!(
        parse("// options: rmw=fused\nacyclic po").unwrap().options,
        ModelOptions { rmw: RmwEvents::Fused, ..ModelOptions::default() }
    );
}

#[test]
fn an_included_file_adds_options() {
    let include = "(* options: rmw=fused asmo=transitive *) let a = po";
    let text = "(* options: rmw=split *) include \"part.cat\"";
    let model = cat::parse_model("model.cat", text, &|name| (name == "part.cat").then(|| include.to_owned()))
        .unwrap();
    assert_eq!(model.options, ModelOptions { asmo: AsmoOrder::Transitive, ..ModelOptions::default() });
    assert_eq!(
        model.sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(),
        ["model.cat", "part.cat"]
    );
    assert_eq!(model.statements[0].span.source, cat::SourceId(1));
}

#[test]
fn clauses_belong_to_statements() {
    let text = "\
(* VK-NO-01 *)

(* VK-A-01, VK-A-02 *)
(* VK-A-03 *)
let a = po (* VK-A-04 *)
let b = rf // VK-B-01
(* VK-C-01 *) let c = po | (* VK-C-02 *)
  rf
  // VK-C-03
  | co (* HSA-2.2.1-01
          VK-C-01 *)
(* about VK-NO-02 *)
let d = po

(* VK-NO-03 *)
(* words *)

let e = po let f = rf (* VK-F-01 *)
(* VK-G-01 *)
(* more words *)
acyclic po as g
(* VK-NO-04 *)
";
    let model = parse(text).unwrap();
    let clauses: Vec<String> = model.statements.iter().map(|statement| statement.clauses.join(" ")).collect();
    assert_eq!(
        clauses,
        [
            "VK-A-01 VK-A-02 VK-A-03 VK-A-04",
            "VK-B-01",
            "VK-C-01 VK-C-02 VK-C-03 HSA-2.2.1-01",
            "",
            "",
            "VK-F-01",
            "VK-G-01",
        ]
    );
    let plan = compile(&model, &ClassFamilies::default());
    assert_eq!(plan.statements[6].clauses, ["VK-G-01"]);
    assert_eq!(plan.statements[6].names, ["g"]);
    assert_eq!(plan.statements[6].span.line, 21);
}

#[test]
fn names_of_a_plan() {
    let model = parse("let hb = po | rf let order = (hb | co)+ let hb = hb; hb acyclic order as x").unwrap();
    let plan = compile(&model, &ClassFamilies::default());
    let [first, order, last] = [0, 1, 2].map(|index| plan.definitions[index].node);
    assert_eq!(plan.find_definition("hb"), Some(last));
    assert_ne!(first, last);
    assert_eq!(plan.find_definition("order"), Some(order));
    assert_eq!(plan.find_definition("po"), None);
    assert_eq!(plan.name_of(first), Some("hb"));
    let cat::PlanNode::Union(_, po, _) = plan.node_at(first) else {
        panic!("hb is {:?}", plan.node_at(first));
    };
    assert_eq!(plan.name_of(po), Some("po"));
    // An acyclic closure is an acyclic relation.
    assert_eq!(plan.node_at(order), cat::PlanNode::Plus(plan.axioms[0].node));
    assert_eq!(plan.statement_at(plan.axioms[0].statement).names, ["x"]);
    let needed = plan.mark_needed([first]);
    assert!(needed[first.to_index()] && !needed[order.to_index()]);
}

#[test]
fn known_emptiness_simplifies() {
    let text = "let hb = po | ssw+ | [AVDEVICE]; po; [VISDEVICE] let chain = [F]; hb";
    let model = parse(text).unwrap();
    let absent = ["ssw", "AVDEVICE", "F"].map(str::to_owned).to_vec();
    let plan = compile(&model, &ClassFamilies { absent, ..ClassFamilies::default() });
    assert_eq!(plan.name_of(plan.find_definition("hb").unwrap()), Some("hb"));
    assert_eq!(plan.nodes.len(), 2);
    assert_eq!(
        plan.node_at(plan.find_definition("chain").unwrap()),
        cat::PlanNode::Empty(cat::NodeKind::Relation)
    );
}

/// Tokens of the language, valid and invalid.
fn token() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "let",
        "rec",
        "and",
        "in",
        "as",
        "include",
        "acyclic",
        "irreflexive",
        "empty",
        "flag",
        "show",
        "unshow",
        "cut",
        "undefined_unless",
        "po",
        "rf",
        "W",
        "R",
        "SC",
        "SEM",
        "SC0",
        "f",
        "x",
        "M",
        "masks",
        "classes",
        "union",
        "intersection",
        "domain",
        "imm",
        "id",
        "0",
        "_",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "|",
        "&",
        ";",
        "\\",
        "*",
        "+",
        "?",
        "~",
        "^",
        "-1",
        "^-1",
        "=",
        ",",
        ":",
        "\"",
        "(*",
        "*)",
        "//",
        "\n",
        "'",
        "é",
        "->",
    ])
}

/// Valid expressions of every form.
fn expression() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec![
        "po", "rf", "W", "R", "0", "_", "id", "f", "x", "M", "SC0", "SC(M)", "SEM(M)", "nothing",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(6, 64, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), proptest::sample::select(vec!["|", "&", ";", "\\", "*"]))
                .prop_map(|((a, b), operator)| format!("({a} {operator} {b})")),
            (inner.clone(), proptest::sample::select(vec!["+", "*", "?", "^-1"]))
                .prop_map(|(a, operator)| format!("({a}{operator})")),
            inner.clone().prop_map(|a| format!("[{a}]")),
            inner.clone().prop_map(|a| format!("~({a})")),
            inner.clone().prop_map(|a| format!("f({a})")),
            inner.clone().prop_map(|a| format!("domain({a})")),
            inner.clone().prop_map(|a| format!("imm({a})")),
            two.clone().prop_map(|(a, b)| format!("(let x = {a} in {b})")),
            two.prop_map(|(a, b)| format!("(let rec x = {a} in {b})")),
            inner.clone().prop_map(|a| format!("union(M in masks: {a})")),
            inner.prop_map(|a| format!("intersection(c in classes: {a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(tokens in proptest::collection::vec(token(), 0..60)) {
        let text = tokens.join(" ");
        match parse(&text) {
            Err(errors) => prop_assert!(!errors.errors.is_empty()),
            Ok(model) => {
                if let Err(errors) = cat::compile(&model, &vocabulary::vulkan(), &ClassFamilies::from_classes([0, 1])) {
                    prop_assert!(!errors.errors.is_empty());
                }
            }
        }
    }

    #[test]
    fn any_expression_is_compiled_or_refused(bodies in proptest::collection::vec(expression(), 1..5)) {
        let mut text = String::from("let f(x) = x | x\n");
        for (index, body) in bodies.iter().enumerate() {
            writeln!(text, "let rec f{index} = {body}").unwrap();
            writeln!(text, "let g{index}(x) = {body}").unwrap();
            writeln!(text, "let x = g{index}(po)").unwrap();
        }
        let model = parse(&text).unwrap();
        for classes in [vec![], vec![0], vec![0, 1]] {
            let families = ClassFamilies::from_classes(classes);
            if let Ok(plan) = cat::compile(&model, &vocabulary::vulkan(), &families) {
                for (index, node) in plan.nodes.iter().enumerate() {
                    prop_assert!(node.operand_nodes().all(|operand| operand.to_index() < index));
                }
            }
        }
    }
}

#[test]
fn the_deepest_accepted_nesting_needs_little_stack() {
    let deep =
        |parentheses: usize| format!("let a = {}po{}", "(".repeat(parentheses), ")".repeat(parentheses));
    parse(&deep(100)).unwrap();
    parse(&deep(100_000)).unwrap_err();
    parse(&format!("let a = {}po", "~".repeat(100_000))).unwrap_err();
    parse(&format!("let a = po{}", "+".repeat(100_000))).unwrap_err();
    parse(&format!("let a = {}", "f [".repeat(100_000))).unwrap_err();
    parse(&format!("let a = {}", "let x = ".repeat(100_000))).unwrap_err();
    // A chain of one operator has a small depth.
    let chain = parse(&format!("let a = po{}", " | rf".repeat(10_000))).unwrap();
    compile(&chain, &ClassFamilies::default());
    // Expanding nested functions is bounded.
    let mut text = String::from("let f0(x) = x\n");
    for index in 1..4000 {
        writeln!(text, "let f{index}(x) = f{}(x)", index - 1).unwrap();
    }
    text.push_str("let a = f3999(po)");
    let model = parse(&text).unwrap();
    cat::compile(&model, &vocabulary::vulkan(), &ClassFamilies::default()).unwrap_err();
}
