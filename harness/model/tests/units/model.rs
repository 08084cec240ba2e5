//! Compiled plans.

use model::Model;
use model::cat::CompiledModel;
use model::internals::TestFeatures;

/// Plans of tests without hosts, sizes, calls and sections contain no nodes for these.
#[test]
fn unused_features_are_not_compiled() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let text = "VULKAN plain\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nst.sc0 x, 1 ;\n";
    let test = litmus::parse(text, "plain").unwrap();
    let (plain, all) = (model.plan_for(&test).unwrap(), model.plan_with_all_features(&test).unwrap());
    // Only `sc` distinguishes vector components; the halves of a barrier are for users' models, sequentially
    // consistent operations for models of other languages.
    let unused = ["component", "ARRIVE", "WAIT", "SEQCST"];
    let absent: Vec<&str> =
        TestFeatures::default().absent_bases().filter(|name| !unused.contains(name)).collect();
    let used =
        |plan: &CompiledModel| plan.names.iter().filter(|name| absent.contains(&name.as_str())).count();
    assert_eq!(used(&plain), 0);
    assert_eq!(used(&all), absent.len());
    assert!(plain.nodes.len() < all.nodes.len(), "{} of {}", plain.nodes.len(), all.nodes.len());
    let axioms = |plan: &CompiledModel| plan.axioms.len();
    // The flag of uninitialized reads exists only for tests that may have some.
    assert_eq!(axioms(&plain) + 1, axioms(&all));
}

/// A shipped model is compiled for the features of a test only; the text of any model is compiled completely.
#[test]
fn texts_of_shipped_models_compile() {
    for (name, _) in Model::shipped_models() {
        Model::from_text(name, Model::shipped_text(name).unwrap(), &|_| None).unwrap();
    }
}
