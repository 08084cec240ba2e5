//! User shaders on the command line.

use crate::common::{Ran, assert_valid, installed, schemas, vk_litmus};
use serde_json::Value;

fn shader(name: &str) -> String {
    format!("{}/../analysis/tests/shaders/{name}.spvasm", env!("CARGO_MANIFEST_DIR"))
}

fn check(name: &str, arguments: &[&str]) -> (Ran, Value) {
    let shader = shader(name);
    let ran = Ran::run(vk_litmus(["check", &shader, "--format", "json"]).args(arguments));
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 1, "{ran:?}");
    for schema in schemas("check.schema.json", "check.schema.json") {
        assert_valid(&schema, &lines[0]);
    }
    (ran, lines[0].clone())
}

#[test]
fn a_lock_without_acquire_and_its_mend() {
    let claim = ["--grid", "2", "--assert", "data.count == 2"];
    let (ran, line) = check("lock", &claim);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!((&line["id"], &line["race"]), (&"lock:main".into(), &"racy".into()));
    assert_eq!((&line["outcomes"], &line["outcomes_listed"]), (&Value::Array(Vec::new()), &false.into()));
    assert_eq!(line["queries"][0]["holds"], false);
    let finding = &line["findings"][0];
    assert_eq!(finding["kind"], "race");
    let places: Vec<(&str, u64)> = finding["at"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| (at["file"].as_str().unwrap(), at["line"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [("lock.comp", 21), ("lock.comp", 21)]);
    let (ran, line) = check("lock-right", &claim);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((&line["race"], &line["findings"]), (&"free".into(), &Value::Array(Vec::new())));
    assert_eq!(line["queries"][0]["holds"], true);
}

#[test]
fn inputs_come_from_flags_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("case.toml");
    let text = "module = \"k.spv\"\nentry = \"main\"\ngrid = [1, 1, 1]\n[buffer.\"0.0\"]\nu32 = [0, 0, 1, 2, 3, 4]\n";
    std::fs::write(&case, text).unwrap();
    let sum = ["--assert", "data.result[0] == 10", "--case", case.to_str().unwrap()];
    let (ran, line) = check("reduce-right", &sum);
    assert_eq!((ran.code, &line["queries"][0]["holds"]), (0, &true.into()), "{ran:?}");
    // A flag overrides the case file.
    let (ran, line) = check("reduce-right", &[&sum[..], &["--buffer", "0.0=zeros:24"]].concat());
    assert_eq!((ran.code, &line["queries"][0]["holds"]), (1, &false.into()), "{ran:?}");
    assert!(ran.messages().contains("does not hold"), "{}", ran.stderr);
}

#[test]
fn progress_of_a_lock() {
    let (_, line) = check("lock-right", &["--grid", "2", "--progress", "fair"]);
    assert_eq!(line["progress"]["terminates"], true);
    let (_, line) = check("lock-right", &["--grid", "2", "--progress", "unfair"]);
    assert_eq!(line["progress"]["terminates"], false);
}

#[test]
fn files_that_are_not_shaders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.spvasm");
    std::fs::write(&bad, "OpCapability Shader\nOpNonsense\n").unwrap();
    let cases: [(&[&str], &str, u64); 3] = [
        (&[bad.to_str().unwrap()], "unknown instruction `OpNonsense`", 2),
        (&["missing.spv"], "missing.spv: No such file or directory (os error 2)", 1),
        (&[&shader("lock"), "--entry", "other"], "no entry point `other`; expected one of `main`", 1),
    ];
    for (arguments, error, line) in cases {
        let ran = Ran::run(vk_litmus(["check", "--format", "json"]).args(arguments));
        assert_eq!(ran.code, 2, "{ran:?}");
        let lines = ran.json_lines();
        assert_eq!((&lines[0]["error"], &lines[0]["line"]), (&error.into(), &line.into()), "{ran:?}");
        for schema in schemas("rejected.schema.json", "check.schema.json") {
            assert_valid(&schema, &lines[0]);
        }
    }
    let ran = Ran::run(&mut vk_litmus(["check", "sb/SB+rlx-rlx", "--grid", "2"]));
    assert_eq!(ran.code, 2, "{ran:?}");
}

/// The answer names the limit that was reached, and the option that raises it.
#[test]
fn an_undecided_answer_names_the_limit() {
    if !installed("glslangValidator") {
        return;
    }
    let kind = |name: &str| format!("{}/tests/all/shaders/kinds/{name}", env!("CARGO_MANIFEST_DIR"));
    let cases: [(&str, &[&str], &str); 4] = [
        (
            "ring.comp",
            &["--grid", "2", "--unroll", "4", "--timeout", "100s"],
            "unknown: the model cut off runs after 4 iterations of a loop; `--unroll 8` continues them",
        ),
        (
            "chained-scan.comp",
            &["--grid", "4"],
            "unknown: the model supports at most 16 invocations; `--grid 2` has this number",
        ),
        (
            "radix-scatter.comp",
            &["--grid", "1", "--buffer", "0.0=random:256"],
            "unknown: the model supports at most 16 invocations; one workgroup alone exceeds the limit: reduce its \
             size with `--spec` if specialization constants set it",
        ),
        // Only in a soak: it takes seconds.
        (
            "slow/mcs.comp",
            &["--grid", "3", "--timeout", "1000s"],
            "unknown: the model supports at most 65536 paths of all invocations; `--unroll 1` analyzes the first \
             iteration of each loop",
        ),
    ];
    let count = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 4 } else { 3 };
    for (name, arguments, words) in cases.into_iter().take(count) {
        let ran = Ran::run(vk_litmus(["check", &kind(name)]).args(arguments));
        assert!(ran.stderr.contains(words), "{name}: {ran:?}");
    }
    let ran = Ran::run(&mut vk_litmus(["check", &kind("histogram.comp"), "--grid", "4"]));
    assert!(!ran.messages().contains("unknown: "), "{ran:?}");
    let folder = tempfile::tempdir().unwrap();
    let shaders = [
        (
            "fragment.frag",
            "void main() {}",
            &["run"][..],
            (2, "only compute shaders can be dispatched: `main` has the stage"),
        ),
        (
            "points.geom",
            "layout(points) in; layout(points, max_vertices = 1) out; void main() {}",
            &["check", "explain", "race", "run"][..],
            (2, "no entry point of a compute, vertex, fragment, task or mesh shader; `main`"),
        ),
        // A check that reaches the limit of time or steps has no findings.
        (
            "endless.comp",
            "layout(binding = 0) buffer B { uint end; };
             void main() { uint i = 0; while (i < 100 || true) i++; end = i; }",
            &["check"][..],
            (3, "endless.comp: unknown: the "),
        ),
        (
            "image.comp",
            "layout(rgba8ui, binding = 0) coherent uniform uimage2D picture;
             layout(binding = 1) coherent buffer B { uint flag; uint seen; };
             void main() {
                 if (gl_WorkGroupID.x == 0) {
                     imageStore(picture, ivec2(3), uvec4(7));
                     memoryBarrier();
                     atomicAdd(flag, 1);
                 } else if (atomicAdd(flag, 0) == 1) {
                     memoryBarrier();
                     seen = imageLoad(picture, ivec2(3)).x;
                 }
             }",
            &["check"][..],
            (0, "unknown: the model cannot be used: line "),
        ),
    ];
    let cases = shaders.iter().flat_map(|(name, text, commands, words)| {
        commands.iter().map(move |command| (name, text, command, words))
    });
    for (name, text, command, words) in cases {
        let shader = folder.path().join(name);
        std::fs::write(&shader, format!("#version 460\n{text}\n")).unwrap();
        let ran =
            Ran::run(vk_litmus([*command, shader.to_str().unwrap(), "--grid", "2"]).current_dir(&folder));
        // `race` prints it after its verdict.
        let output = format!("{}{}", ran.stdout, ran.stderr);
        let output = output.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        let (code, words) = words;
        assert!(ran.code == *code && output.contains(words), "{ran:?}");
    }
}

#[test]
fn explanations_have_reasons_and_fixes() {
    let cases: [(&str, &[&str], &[&str]); 3] = [
        (
            "lock",
            &["--grid", "2", "--assert", "data.count == 2"],
            &[
                "forall (data.count == 2) does not hold",
                "Why: no synchronization orders the two accesses.",
                "lock.comp:10: give this atomic Acquire and MakeVisible semantics on buffer memory",
                "lock.comp:21: declare `data` coherent",
            ],
        ),
        ("reduce", &[], &["sums[2]", "reduce.comp:9: put `barrier();` before the loop in this line"]),
        (
            "message-not-coherent",
            &["--grid", "2"],
            &["not made available", "message-not-coherent.comp:9: declare `data` coherent"],
        ),
    ];
    for (name, arguments, expected) in cases {
        let ran = Ran::run(vk_litmus(["explain", &shader(name)]).args(arguments));
        assert_eq!(ran.code, 1, "{ran:?}");
        for words in expected {
            assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
        }
    }
    let ran = Ran::run(&mut vk_litmus(["explain", &shader("lock-right"), "--grid", "2"]));
    assert!(ran.code == 0 && ran.stdout.contains("`main`: clean"), "{ran:?}");
}

#[test]
fn the_litmus_test_of_a_shader_is_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, grid, race) in
        [("lock", "2", "racy"), ("lock-right", "2", "free"), ("reduce-right", "1", "free")]
    {
        let ran = Ran::run(&mut vk_litmus(["convert", &shader(name), "--grid", grid, "--to", "litmus"]));
        assert_eq!(ran.code, 0, "{ran:?}");
        let file = folder.path().join(format!("{name}.litmus"));
        std::fs::write(&file, &ran.stdout).unwrap();
        let ran = Ran::run(&mut vk_litmus(["check", file.to_str().unwrap(), "--format", "json"]));
        assert_eq!((ran.code, &ran.json_lines()[0]["race"]), (0, &race.into()), "{ran:?}");
    }
}

fn race(name: &str, arguments: &[&str]) -> (Ran, Value) {
    let shader = shader(name);
    let ran = Ran::run(vk_litmus(["race", &shader, "--format", "json"]).args(arguments));
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 1, "{ran:?}");
    for schema in schemas("race.schema.json", "race.schema.json").iter().filter(|schema| schema.exists()) {
        assert_valid(schema, &lines[0]);
    }
    (ran, lines[0].clone())
}

#[test]
fn addresses_and_images_are_bound_by_name() {
    let image = ["--image", "0.0=8x8"];
    // Separate buffers: invocations do not read what others write.
    let (ran, line) = race("addresses", &[&["--bind", "pc.a=A", "--bind", "Push.b=B"], &image[..]].concat());
    assert_eq!((ran.code, &line["verdict"]), (0, &"clean".into()), "{ran:?}");
    // All addresses with one name point to the same buffer.
    let (ran, line) = race("addresses", &[&["--bind", "pc.a=A", "--bind", "push@16=A"], &image[..]].concat());
    assert_eq!((ran.code, &line["findings"][0]["kind"]), (1, &"race".into()), "{ran:?}");
    assert!(line["findings"][0]["message"].as_str().unwrap().contains("`A+4`"), "{line}");
    // An image without a size has a default size, which is reported.
    let (ran, line) = race("addresses", &["--bind", "pc.a=A", "--bind", "pc.b=B"]);
    assert_eq!((ran.code, &line["verdict"]), (0, &"clean".into()), "{ran:?}");
    let words = line["coverage"]["limits"].to_string();
    assert!(words.contains("` is not given: 64x64x1 of zeros assumed"), "{words}");
    // The buffer has a length; accesses beyond it are out of bounds.
    let bound = ["--bind", "pc.a=A", "--bind", "pc.b=B", "--buffer", "B=iota:16"];
    let (ran, line) = race("addresses", &[&bound, &image[..]].concat());
    assert_eq!((ran.code, &line["findings"][0]["kind"]), (1, &"out-of-bounds".into()), "{ran:?}");
    for (wrong, told) in [
        (["--bind", "pc.c=A"], "an address at pc.c, where the kernel has no variable"),
        (["--bind", "7@x=A"], "expected push@OFFSET, SET.BINDING@OFFSET or BLOCK.MEMBER"),
        (["--buffer", "C=iota"], "a buffer `C`, which the kernel does not have"),
        (["--buffer", "0.0=zeross:4"], "(os error 2); expected a file, or zeros, ones, iota"),
        (["--image", "0.0=8y"], "expected an image such as"),
        (["--sampler", "0.0=cubic"], "expected a sampler such as"),
        (["--sampler", "0.0=linear,border"], "expected a sampler such as"),
        (["--sampler", "picture=linear"], "a sampler `picture`, which the kernel does not have"),
    ] {
        let ran = Ran::run(vk_litmus(["race", &shader("addresses")]).args(wrong));
        assert_eq!(ran.code, 2, "{wrong:?}: {ran:?}");
        assert!(ran.words().contains(told), "{wrong:?}: {ran:?}");
    }
}

#[test]
fn grids_beyond_the_lifter_are_walked() {
    let answer = |name: &str, arguments: &[&str]| {
        let shader = shader(name);
        let ran = Ran::run(vk_litmus(["check", &shader, "--format", "json"]).args(arguments));
        let lines = ran.json_lines();
        assert_eq!(lines.len(), 1, "{ran:?}");
        for schema in
            schemas("check.schema.json", "check.schema.json").iter().filter(|schema| schema.exists())
        {
            assert_valid(schema, &lines[0]);
        }
        (ran, lines[0].clone())
    };
    let (ran, line) = answer("reduce", &["--grid", "64"]);
    assert_eq!((ran.code, &line["race"], &line["id"]), (1, &"racy".into(), &"reduce:main".into()), "{ran:?}");
    assert_eq!(line["findings"][0]["at"][0]["file"], "reduce.comp");
    assert!(ran.messages().contains("64 workgroups"), "{}", ran.stderr);
    // A sample of schedules does not decide every schedule.
    let (ran, line) = answer("lock-right", &["--grid", "64"]);
    assert_eq!((ran.code, &line["race"]), (0, &"unknown".into()), "{ran:?}");
    // The undecided assertion is reported.
    let (ran, line) = answer("lock-right", &["--grid", "64", "--assert", "data.count == 64"]);
    assert_eq!((ran.code, &line["queries"][0]["holds"]), (3, &Value::Null), "{ran:?}");
    assert!(ran.messages().contains("has no answer on a grid of this size"), "{ran:?}");
    // Walks support no other model.
    let ran = Ran::run(&mut vk_litmus(["check", &shader("reduce"), "--grid", "64", "--model", "sc"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.messages().contains("cannot analyze: more than"), "{ran:?}");
}

/// The reason why an assertion is undecided: the size of the grid, or a value that is not tracked.
#[test]
fn undecided_assertions_have_a_reason() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shader = folder.path().join("root.comp");
    let text = "#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer D { uint d[]; };
void main() {
    d[gl_GlobalInvocationID.x] = uint(sqrt(float(d[gl_GlobalInvocationID.x] + 4u)));
}
";
    std::fs::write(&shader, text).unwrap();
    let ran = Ran::run(vk_litmus(["check", "--assert", "d[0] == 2"]).arg(&shader));
    assert_eq!(ran.code, 3, "{ran:?}");
    let why =
        "`forall (d[0] == 2)` has no answer: line 5: cannot analyze: a final value is computed from floats";
    assert!(ran.stderr.contains(why), "{ran:?}");
}

#[test]
fn races_on_the_lines_of_the_source() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/shaders/kinds");
    let shader = format!("{folder}/fold-in-lockstep.comp");
    let output_of = |format: &str| {
        let ran = Ran::run(&mut vk_litmus(["race", &shader, "--subgroup-size", "32", "--format", format]));
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.stdout
    };
    let page = output_of("html");
    let lines = page.lines().filter(|line| line.contains("<mark>"));
    let found = lines.clone().any(|line| line.contains("if (t &lt; 1) s[t] += s[t + 1];"));
    assert!(found && page.contains("read by invocation (0,0,0) of workgroup (0,0,0)"), "{page}");
    let fix = "11: give each round of this reduction its own lanes, and a barrier after it";
    assert!(page.contains(&format!("Fix: {shader}:{fix}")), "{page}");
    let log: Value = serde_json::from_str(&output_of("sarif")).unwrap();
    let first = &log["runs"][0]["results"][0];
    assert_eq!(first["ruleId"], "lockstep");
    assert_eq!(first["locations"][0]["physicalLocation"]["region"]["startLine"], 17);
    assert_eq!(first["relatedLocations"].as_array().unwrap().len(), 1);
    let message = first["message"]["text"].as_str().unwrap();
    assert!(message.ends_with(fix), "{message}");
    let mended = format!("    fix {shader}:{fix}\n");
    assert!(output_of("text").contains(&mended));
}

#[test]
fn check_reports_findings_other_than_races() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/shaders/kinds");
    let checked = |name: &str, format: &str, grid: &str| {
        let shader = format!("{folder}/{name}.comp");
        let flags = ["--format", format, "--grid", grid, "--subgroup-size", "4"];
        Ran::run(vk_litmus(["check", &shader]).args(flags))
    };
    for (name, grid, kinds) in [
        ("lock-all-lanes", "1", &["hang"][..]),
        ("lock-workgroup", "2", &[]),
        ("uninit-shared", "1", &["uninitialised-read", "uninitialised-read"]),
        ("row-major-rows", "1", &["race"]),
    ] {
        let ran = checked(name, "json", grid);
        let line = &ran.json_lines()[0];
        let found = line["findings"].as_array().unwrap().iter().map(|found| found["kind"].as_str().unwrap());
        assert_eq!(
            (ran.code, found.collect::<Vec<_>>()),
            (i32::from(!kinds.is_empty()), kinds.to_vec()),
            "{ran:?}"
        );
    }
    // Without a grid, the answer is that of `race` as well.
    for name in ["channels-below-stride", "count-within-workgroup", "lock-not-released", "reuse-in-place"] {
        let shader = format!("{folder}/{name}.comp");
        let code = |command: &str| Ran::run(&mut vk_litmus([command, shader.as_str()])).code;
        assert_eq!(code("check"), code("race"), "{name}");
    }
    let ran = checked("lock-all-lanes", "html", "1");
    let lock = "while (atomicCompSwap(lock, 0u, 1u) != 0u) { }</mark>";
    assert!(ran.code == 1 && ran.stdout.contains(lock), "{ran:?}");
}

#[test]
fn races_over_whole_grids() {
    let (ran, line) = race("reduce", &["--grid", "64"]);
    assert_eq!((ran.code, &line["verdict"]), (1, &"racy".into()), "{ran:?}");
    assert_eq!(
        (&line["schema"], &line["grid"]),
        (&"vk-litmus/race/2".into(), &serde_json::json!([64, 1, 1]))
    );
    assert_eq!(line["findings"][0]["kind"], "race");
    assert_eq!(line["findings"][0]["at"][0]["file"], "reduce.comp");
    let (ran, line) = race("divergent", &[]);
    let kinds: Vec<&Value> =
        line["findings"].as_array().unwrap().iter().map(|found| &found["kind"]).collect();
    assert_eq!((ran.code, kinds), (1, vec![&"race".into(), &"divergent-barrier".into()]), "{ran:?}");
    // If the result depends on the schedule, the model decides small grids.
    let (ran, line) = race("lock-right", &["--grid", "2"]);
    assert_eq!((ran.code, &line["verdict"]), (0, &"clean".into()), "{ran:?}");
    assert!(line["coverage"]["schedules"]["model"] == "vulkan", "{line}");
    let (ran, line) = race("lock", &["--grid", "2"]);
    assert_eq!((ran.code, &line["findings"][0]["at"][0]["line"]), (1, &21.into()), "{ran:?}");
    let (ran, line) = race("missing", &[]);
    assert_eq!(
        (ran.code, &line["verdict"], &line["findings"]),
        (2, &"refused".into(), &serde_json::json!([]))
    );
    let shader = shader("message-not-coherent");
    let ran = Ran::run(&mut vk_litmus(["race", &shader, "--grid", "2"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("main`: racy\n  for these inputs"), "{}", ran.stdout);
}

#[test]
fn findings_of_walks_are_explained() {
    let ran = Ran::run(&mut vk_litmus(["explain", &shader("reduce"), "--grid", "64"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    for told in [
        "64 workgroups of 4",
        "    why: no synchronization orders the two accesses\n",
        "reduce.comp:9: put `barrier();` before the loop in this line",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
}

/// The HTML page and the SVG have the contents of the text: positions, reason, fix, and the command without
/// `--format`.
#[test]
fn explanations_of_shaders_are_pages_and_pictures() {
    let shader = shader("reduce");
    let ran = |format| Ran::run(&mut vk_litmus(["explain", &shader, "--grid", "64", "--format", format]));
    let (page, picture) = (ran("html"), ran("svg"));
    assert_eq!((page.code, picture.code), (1, 1), "{page:?}");
    for told in ["racy", "data race on", "no synchronization orders", "race: not ordered", "write, line"] {
        assert!(page.stdout.contains(told), "{told}: {}", page.stdout);
        assert!(picture.stdout.contains(told), "{told}: {}", picture.stdout);
    }
    assert!(page.stdout.contains("put <code>barrier();</code>"), "{}", page.stdout);
    assert!(picture.stdout.contains("put `barrier();`"), "{}", picture.stdout);
    assert!(
        page.stdout.contains("reduce.comp:8") && page.stdout.contains(" --grid 64</pre>"),
        "{}",
        page.stdout
    );
    assert!(
        picture.stdout.starts_with("<svg") && picture.stdout.trim_end().ends_with("</svg>"),
        "{}",
        picture.stdout
    );
    let ran = ran("dot");
    assert!(ran.code == 2 && ran.messages().contains("--format dot"), "{ran:?}");
    // The headline is the failed assertion, although there is no race.
    let claim = ["explain", "--grid", "2", "--assert", "data.count == 3", "--format", "html"];
    let ran = Ran::run(vk_litmus(claim).arg(self::shader("lock-right")));
    assert!(ran.code == 1 && ran.stdout.contains("main: the assertion does not hold</h1>"), "{ran:?}");
}

/// `patch` applies the fixes for two findings, and the result is clean.
#[test]
fn patch_applies_the_fixes_of_race() {
    if !installed("glslangValidator") || !installed("patch") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "#version 450\nlayout(local_size_x = 8) in;\nlayout(binding = 0) buffer B { uint b[]; };\n\
                  shared uint a[8], c[8];\nvoid main() {\n    uint i = gl_LocalInvocationIndex;\n    a[i] = i;\n    \
                  c[i] = a[7 - i];\n    b[gl_GlobalInvocationID.x] = c[7 - i];\n}\n";
    std::fs::write(folder.path().join("two.comp"), source).unwrap();
    let race = |arguments: &[&str]| {
        Ran::run(vk_litmus(["race", "two.comp"]).args(arguments).current_dir(folder.path()))
    };
    let ran = race(&["--fix", "two.diff"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let patch = std::process::Command::new("patch")
        .args(["-p0", "-i", "two.diff"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(patch.status.success(), "{patch:?}");
    let fixed = std::fs::read_to_string(folder.path().join("two.comp")).unwrap();
    assert_eq!(fixed.matches("barrier();").count(), 2, "{fixed}");
    assert_eq!(race(&[]).code, 0, "{fixed}");
}

/// A racing pair has a litmus test with two threads, which is also racy under the model.
#[test]
fn races_become_litmus_tests() {
    let folder = tempfile::tempdir().unwrap();
    for (name, workgroups) in
        [("reduce", "64"), ("divergent", "1"), ("lock", "40"), ("message-not-coherent", "2")]
    {
        let emit = ["race", &shader(name), "--grid", workgroups, "--emit", "litmus"];
        let first = folder.path().join(format!("{name}.litmus"));
        let ran = Ran::run(vk_litmus(emit).arg("--out").arg(&first));
        assert_eq!(ran.code, 1, "{ran:?}");
        // The output is a valid litmus test.
        let ran = Ran::run(&mut vk_litmus(emit));
        assert_eq!((ran.code, &ran.stdout), (1, &std::fs::read_to_string(&first).unwrap()), "{ran:?}");
        let several = ran.messages().contains("more: write all to files with");
        assert_eq!(several, first.with_extension("1.litmus").exists(), "{ran:?}");
        for number in 0.. {
            let file = match number {
                0 => first.clone(),
                number => first.with_extension(format!("{number}.litmus")),
            };
            let Ok(text) = std::fs::read_to_string(&file) else { break };
            let ran = Ran::run(&mut vk_litmus(["check", file.to_str().unwrap(), "--format", "json"]));
            assert_eq!((ran.code, &ran.json_lines()[0]["race"]), (0, &"racy".into()), "{text}");
            assert!(text.contains("P1@") && !text.contains("P2@"), "{text}");
        }
    }
}

#[test]
fn findings_as_sarif() {
    let sarif = |name: &str| {
        let ran = Ran::run(&mut vk_litmus([
            "check",
            &shader(name),
            "--grid",
            "2",
            "--assert",
            "data.count == 2",
            "--format",
            "sarif",
        ]));
        (ran.code, serde_json::from_str::<Value>(&ran.stdout).unwrap())
    };
    let (code, log) = sarif("lock");
    assert_eq!((code, &log["version"]), (1, &"2.1.0".into()));
    let run = &log["runs"][0];
    let found: Vec<(&str, &str)> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| (result["ruleId"].as_str().unwrap(), result["level"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [("race", "error"), ("claim", "error")]);
    let rules: Vec<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["claim", "race"]);
    let race = &run["results"][0];
    for place in [&race["locations"][0], &race["relatedLocations"][0]] {
        let location = &place["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "lock.comp");
        assert_eq!(location["region"]["startLine"], 21);
    }
    let (code, log) = sarif("lock-right");
    assert_eq!((code, &log["runs"][0]["results"]), (0, &Value::Array(Vec::new())));
    let ran = Ran::run(&mut vk_litmus(["check", "a b.spv", "--format", "sarif"]));
    let log: Value = serde_json::from_str(&ran.stdout).unwrap();
    let result = &log["runs"][0]["results"][0];
    assert_eq!((ran.code, &result["ruleId"]), (2, &"rejected".into()));
    assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "a%20b.spv");
}

/// `check` does not leave open what `race` proves, although it explored some of the schedules.
#[test]
fn proofs_decide_schedules_that_were_not_explored() {
    if installed("glslangValidator") {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/shaders/kinds/proved-order-dependent.comp");
        let ran = Ran::run(&mut vk_litmus(["check", file]));
        assert!(ran.code == 0 && ran.stdout.contains(":main: race-free under vulkan"), "{ran:?}");
    }
}
