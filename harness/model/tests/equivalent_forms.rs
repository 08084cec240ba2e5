//! Equivalent forms of a model have the same answers.
//!
//! The engine splits a plan into global choices and choices per location. The split depends on the syntax of
//! a statement, but the result must not. Each statement is rewritten into set-theoretically equal forms that
//! no simplification recognizes.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use litmus::{Outcome, Race, Test};
use model::{Budget, Model, PredictOptions, predict};
use witness::generate::generate_program;

/// The statements of the shared body of the Vulkan models.
const BODY: &str = "vulkan-body.cat";

/// Equal forms of a definition: for a relation, and for a set.
const FORMS: [(&str, [&str; 2]); 4] = [
    ("absorbed by a union", ["NAME | (NAME & loc)", "NAME | (NAME & W)"]),
    ("absorbed by an intersection", ["NAME & (NAME | po)", "NAME & (NAME | R)"]),
    ("split", ["(NAME & loc) | (NAME \\ loc)", "(NAME & W) | (NAME \\ W)"]),
    (
        "within what contains it",
        ["(NAME | (po; sw; po)) \\ ((po; sw; po) \\ NAME)", "(NAME | M) \\ (M \\ NAME)"],
    ),
];

/// Returns the heads of the definitions in a text with their ends: `let NAME =` or `let NAME(ARGUMENTS) =`.
fn definitions(text: &str) -> Vec<(String, usize)> {
    let starts: Vec<usize> = text.match_indices("\nlet ").map(|(at, _)| at + 1).collect();
    starts
        .iter()
        .map(|&start| {
            let head = text[start + 4..].split('=').next().unwrap().trim().to_owned();
            // The next comment, definition or axiom starts in the first column.
            let rest = &text[start + 4..];
            let next = ["\nlet ", "\n(*", "\nacyclic", "\nempty", "\nirreflexive", "\nflag"];
            let end = next.iter().filter_map(|word| rest.find(word)).min().unwrap_or(rest.len());
            (head, start + 4 + end)
        })
        .collect()
}

/// Returns a model with one definition rewritten.
fn rewrite_definition(name: &str, definition: &(String, usize), form: &[&str; 2]) -> Option<Model> {
    let body = Model::shipped_text(BODY.trim_end_matches(".cat")).unwrap();
    let (head, end) = definition;
    form.iter().find_map(|form| {
        let again = format!("\nlet {head} = {}", form.replace("NAME", head));
        let changed = format!("{}{again}{}", &body[..*end], &body[*end..]);
        let include = |file: &str| (file == BODY).then(|| changed.clone());
        Model::from_text(name, Model::shipped_text(name).unwrap(), &include).ok()
    })
}

fn race_and_outcomes(test: &Test, model: &Model, bound: u32) -> Option<(Race, BTreeSet<Outcome>)> {
    let prediction =
        predict(test, model, &PredictOptions { budget: Budget::UNLIMITED, unroll: bound }).ok()?;
    let allowed =
        prediction.outcomes.into_iter().filter(|(_, says)| says.allowed).map(|(outcome, _)| outcome);
    Some((prediction.race, allowed.collect()))
}

/// Returns the number of random programs per form: small by default, or `VK_LITMUS_REWRITTEN_PROGRAMS`.
fn random_program_count() -> usize {
    let wanted = std::env::var("VK_LITMUS_REWRITTEN_PROGRAMS").ok();
    wanted.map_or(300, |text| text.parse().expect("VK_LITMUS_REWRITTEN_PROGRAMS is a number"))
}

#[test]
fn equal_forms_of_a_statement_give_equal_answers() {
    let vulkan = Model::shipped("vulkan").unwrap().unwrap();
    let all = definitions(Model::shipped_text(BODY.trim_end_matches(".cat")).unwrap());
    assert!(all.len() > 80, "only {} definitions", all.len());
    for (what, form) in FORMS {
        let each = random_program_count().div_ceil(all.len()).max(2) as u64;
        let (mut models, mut compared, mut undecided) = (0, 0, 0);
        for (index, definition) in all.iter().enumerate() {
            let Some(model) = rewrite_definition("vulkan", definition, &form) else { continue };
            models += 1;
            for turn in 0..each {
                let program = generate_program(1_000_000 + index as u64 * each + turn);
                let test = litmus::parse(&program.text, "random").unwrap();
                let (ours, theirs) = (
                    race_and_outcomes(&test, &vulkan, program.bound),
                    race_and_outcomes(&test, &model, program.bound),
                );
                compared += 1;
                // Reductions of loops that hold for the model's own text only decide more programs.
                if let (Some((_, ours)), Some((Race::Unknown, theirs))) = (&ours, &theirs) {
                    undecided += 1;
                    assert!(theirs.is_subset(ours), "{} {what}:\n{}", definition.0, program.text);
                } else {
                    assert_eq!(ours, theirs, "{} {what}:\n{}", definition.0, program.text);
                }
            }
        }
        println!(
            "{what}: {models} of {} definitions, {each} programs each, {undecided} undecided",
            all.len()
        );
        assert!(undecided * 10 < compared, "{what}: {undecided} of {compared} programs are undecided");
        // The first definitions precede `sw`, and some forms do not apply to them.
        assert!(models * 3 > all.len(), "{what}: only {models} definitions could be written so");
    }
}

/// A model with a known wrong answer, and an equivalent one.
#[test]
fn a_composition_across_locations_is_not_split_by_location() {
    let text = "VULKAN ni
{ x = 0; y = 0; }
P0@sg 0, wg 0, qf 0                         | P1@sg 0, wg 2, qf 0 | P2@sg 0, wg 4, qf 0                         ;
st.nonpriv.sc1 x, 1                         | st.atom.dv.sc0 y, 2 | ld.atom.acq.dv.sc0.semsc0.semsc1 r0, y     ;
st.atom.rel.dv.sc0.semsc0.semsc1.semav y, 1 |                     | ld.vis.dv.sc1 r1, x                        ;
exists (P2:r0 == 1 /\\ P2:r1 == 0)";
    let test = litmus::parse(text, "ni").unwrap();
    for between in ["hb", "(hb | ithb(c))"] {
        let cat = format!(
            "\"between\"
(* options: rmw=split init=per-location barrier=workgroup asmo=plain final=device-read values=no-thin-air *)
let sw = [REL & ATOM]; rf; [ACQ & ATOM]
let ithb(M) = (([SEM(M)]; sw; [SEM(M)]) | ([ACQ & SEM(M)]; po; [SC(M) | SEM(M)]))+
let hb = po | union(M in masks: ithb(M))
let av(c) = [W & SC(c)]; po?
let wr(c) = av(c); {between}; [VIS & R & SC(c)]
let locord = loc & union(c in classes: wr(c))
let fr = ((([IW]; rf)^-1; loc); [W \\ IW]) \\ id
acyclic locord | fr as consistency"
        );
        let model = Model::from_text("between", &cat, &|_| None).unwrap();
        let prediction = predict(&test, &model, &PredictOptions::default()).unwrap();
        assert_eq!(prediction.can_meet_condition, Some(false), "{between}");
    }
}
