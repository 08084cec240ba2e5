//! Instructions that compilers emit for compute shaders, one per row of `shaders/instructions.tsv`.
//!
//! `check` and `race` accept each, and the simulated GPU computes the same bits as lavapipe. If Vulkan allows
//! a range of results, the row compares within it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Ran, installed, software_drivers, vk_litmus};

/// Initial contents of the buffers.
const INPUTS: [&str; 5] =
    ["0.0=floats:1024", "0.1=random:1024", "0.2=zeros:16384", "0.3=random:64", "0.4=floats:1024"];

const NUMBERS: &str = "
    i = gl_GlobalInvocationID.x, at = 0;
    uvec4 u = words[i], v = words[i + 16];
    ivec4 s = ivec4(u), t = ivec4(v);
    uint w = words[i + 32].x, x = words[i + 32].y;
    vec4 a = vec4(s >> 12) / 64, b = vec4(t >> 14) / 32, c = vec4((s ^ t) >> 16) / 8, unit = vec4(s >> 16) / 32768;
    bvec4 k = lessThan(u, v), l = lessThan(u.yzwx, v);
";

/// Returns the preamble, the functions and the inputs for rows of a kind.
fn kind(of: &str) -> (String, &'static str, &'static str) {
    let extensions = |names: &[&str]| {
        names.iter().map(|name| format!("#extension GL_{name} : enable\n")).collect::<String>()
    };
    match of {
        "wide" => (
            extensions(&["EXT_shader_explicit_arithmetic_types_int64"]),
            "void put(double value) { put(unpackDouble2x32(value)); }
void put(dvec2 value) { put(uvec4(unpackDouble2x32(value.x), unpackDouble2x32(value.y))); }
void put(bvec2 value) { put(uvec2(value)); }
bvec2 near64(dvec2 x, dvec2 y) { return lessThanEqual(abs(x - y), 1e-9 * max(dvec2(1), max(abs(x), abs(y)))); }
",
            "    dvec2 d = dvec2(a.xy) + dvec2(1, 2) / 1024, e = dvec2(b.xy) * 3 + 0.125;
    uint64_t m = pack64(u.xy), n = pack64(v.xy);
",
        ),
        "group" | "group-sizes" => {
            let names = ["basic", "vote", "ballot", "shuffle", "shuffle_relative", "arithmetic", "quad"];
            let names = names.iter().map(|name| format!("KHR_shader_subgroup_{name}"));
            let sizes = ["int8", "int16", "int64", "float16"].iter().flat_map(|size| {
                ["subgroup_extended_types", "explicit_arithmetic_types"].map(|of| format!("EXT_shader_{of}_{size}"))
            });
            let names: Vec<String> = match of {
                "group" => names.collect(),
                _ => names.chain(sizes).collect(),
            };
            (extensions(&names.iter().map(String::as_str).collect::<Vec<_>>()), "", "")
        }
        "dot" => (
            extensions(&["EXT_spirv_intrinsics", "EXT_shader_explicit_arithmetic_types_int8"]) + DOTS,
            "",
            "    i8vec4 p = i8vec4(u), q = i8vec4(v);
    u8vec4 r = u8vec4(p), e = u8vec4(q);
",
        ),
        _ => (String::new(), "", ""),
    }
}

/// Dot products of integer vectors, for which GLSL has no functions: four 8-bit numbers, the same packed into
/// one word, and four 32-bit numbers.
const DOTS: &str = include_str!("shaders/dot-products.glsl");

/// A row: the instruction, its kind, and statements that store at most [`PLACES`] results.
struct Row {
    name: String,
    of: String,
    statements: String,
}

/// Largest number of results of a row.
const PLACES: usize = 4;
/// Number of rows in one shader. Rows of a kind are tried together; after a failure, each half of them.
const ROWS_PER_SHADER: usize = 16;

fn rows() -> Vec<Row> {
    let rows = fs::read_to_string(shaders().join("instructions.tsv")).unwrap();
    let row = |line: &str| {
        let [name, of, statements] = line.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
        Row { name: name.to_owned(), of: of.to_owned(), statements: statements.to_owned() }
    };
    rows.lines().skip(1).map(row).collect()
}

fn shaders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders")
}

/// Writes a shader with some rows of a kind; the first row gives its name.
fn write_shader(folder: &Path, all: &[Row], rows: &[usize]) -> PathBuf {
    let start = fs::read_to_string(shaders().join("instructions.comp")).unwrap();
    let start = start.strip_prefix("#version 450\n").unwrap();
    let (extensions, functions, numbers) = kind(&all[rows[0]].of);
    let mut text = format!("#version 450\n{extensions}{start}{functions}void main() {{{NUMBERS}{numbers}");
    for (place, row) in rows.iter().enumerate() {
        writeln!(text, "    at = {};\n    {{ {}; }}", place * PLACES, all[*row].statements).unwrap();
    }
    let file = folder.join(format!("{:03}.comp", rows[0]));
    fs::write(&file, text + "}\n").unwrap();
    file
}

/// Returns the JSON lines of a command for all shaders, by file.
fn lines_by_file(words: &[&str], files: &[PathBuf], folder: &Path) -> BTreeMap<String, Value> {
    let mut command = vk_litmus(words.iter().copied());
    command.args(["--format", "json"]).current_dir(folder);
    command.args(files);
    for input in INPUTS {
        command.args(["--buffer", input]);
    }
    let ran = Ran::run(&mut command);
    let number = |line: &Value| {
        let name =
            line["file"].as_str().or(line["source"].as_str()).or(line["id"].as_str()).unwrap_or_default();
        let name = name.rsplit('/').next().unwrap();
        name.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    ran.json_lines().into_iter().map(|line| (number(&line), line)).collect()
}

/// Returns the final contents on a device, as hashes.
fn final_contents(line: &Value) -> Vec<String> {
    let contents = line["shader"]["contents"].as_array().into_iter().flatten();
    contents.map(|content| content["hash"].as_str().unwrap().to_owned()).collect()
}

/// Returns the answers for groups of rows, by the number of their first row.
fn answers(all: &[Row], groups: &[Vec<usize>]) -> BTreeMap<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = groups.iter().map(|rows| write_shader(folder.path(), all, rows)).collect();
    let lines = |words: &[&str]| lines_by_file(words, &files, folder.path());
    let run = |device| lines(&["run", "--device", device, "--instances", "1", "--seed", "1"]);
    let (check, race, sim) = (lines(&["check", "--grid", "1"]), lines(&["race", "--grid", "1"]), run("sim"));
    let lavapipe = software_drivers().contains(&"lavapipe").then(|| run("lavapipe"));
    let answer = |rows: &Vec<usize>| {
        let number = format!("{:03}", rows[0]);
        let word = |lines: &BTreeMap<String, Value>| match lines.get(&number) {
            Some(line) => {
                let why = line["why"].as_str().or(line["reason"].as_str()).unwrap_or_default();
                let verdict = line["race"].as_str().or(line["verdict"].as_str()).unwrap_or("?");
                if matches!(verdict, "free" | "clean") {
                    verdict.to_owned()
                } else {
                    format!("{verdict} {why}")
                }
            }
            None => "refused".to_owned(),
        };
        let device = match sim.get(&number).map(|line| (final_contents(line), line)) {
            Some((own, line)) if own.is_empty() => format!("none: {}", line["reason"]),
            Some((own, _)) => {
                match lavapipe.as_ref().and_then(|lines| lines.get(&number)).map(final_contents) {
                    Some(other) if other == own => "as lavapipe".to_owned(),
                    Some(other) if other.is_empty() => "lavapipe left none".to_owned(),
                    Some(_) => "not as lavapipe".to_owned(),
                    None => "as lavapipe".to_owned(),
                }
            }
            None => "refused".to_owned(),
        };
        (rows[0], format!("check {}, race {}, sim {device}", word(&check), word(&race)))
    };
    groups.iter().map(answer).collect()
}

/// Compiles a shader with some rows and returns its assembly.
fn compile_shader(folder: &Path, all: &[Row], rows: &[usize]) -> String {
    let compiled = Command::new("glslangValidator")
        .args(["-V", "-g", "-H", "--target-env", "vulkan1.3", "-S", "comp", "-o"])
        .arg(folder.join("module.spv"))
        .arg(write_shader(folder, all, rows))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&compiled.stdout).into_owned();
    assert!(compiled.status.success(), "{}: {text}", all[rows[0]].name);
    match all[rows[0]].of.as_str() {
        // The compiler has no name for this instruction and emits its number.
        "dot" => {
            let read = Command::new("spirv-dis").arg(folder.join("module.spv")).output().unwrap();
            String::from_utf8_lossy(&read.stdout).replace("Op", "")
        }
        _ => text,
    }
}

/// Returns true if the text contains the instruction of a row.
fn names(text: &str, row: &Row) -> bool {
    let instruction = row.name.split('.').next().unwrap();
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == instruction)
}

/// Returns the rows of a shader whose source lines do not compile to their instruction.
fn unnamed(folder: &Path, all: &[Row], rows: &[usize]) -> Vec<usize> {
    let source = fs::read_to_string(write_shader(folder, all, rows)).unwrap();
    let mut by_line: BTreeMap<usize, String> = BTreeMap::new();
    let mut at = 0;
    for line in compile_shader(folder, all, rows).lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["Line", _, number, _] => at = number.parse().unwrap(),
            _ => by_line.entry(at).or_default().extend([line, "\n"]),
        }
    }
    let instruction_of = |row: usize| {
        let statement = format!("    {{ {}; }}", all[row].statements);
        let number = 1 + source.lines().position(|line| line == statement).unwrap();
        by_line.get(&number).map(String::as_str).unwrap_or_default()
    };
    rows.iter().copied().filter(|row| !names(instruction_of(*row), &all[*row])).collect()
}

#[test]
fn every_instruction_that_compilers_emit() {
    if !installed("glslangValidator") {
        return;
    }
    const GOOD: &str = "check free, race clean, sim as lavapipe";
    let all = rows();
    let folder = tempfile::tempdir().unwrap();
    let mut of_kind: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, row) in all.iter().enumerate() {
        of_kind.entry(&row.of).or_default().push(number);
    }
    let groups: Vec<Vec<usize>> =
        of_kind.values().flat_map(|rows| rows.chunks(ROWS_PER_SHADER)).map(<[usize]>::to_vec).collect();
    // Types, constants and similar instructions are on other lines.
    for row in groups.iter().flat_map(|rows| unnamed(folder.path(), &all, rows)) {
        let text = compile_shader(folder.path(), &all, &[row]);
        assert!(names(&text, &all[row]), "{} is not in what its row compiles to", all[row].name);
    }
    // lavapipe crashes on some combinations of good rows.
    let (mut tried, mut answers_of_rows) = (groups, BTreeMap::new());
    while !tried.is_empty() {
        let found = answers(&all, &tried);
        let (single_rows, halved): (Vec<_>, Vec<_>) =
            tried.into_iter().filter(|rows| found[&rows[0]] != GOOD).partition(|rows| rows.len() == 1);
        answers_of_rows.extend(single_rows.into_iter().map(|rows| (rows[0], found[&rows[0]].clone())));
        let halves =
            |rows: Vec<usize>| rows.chunks(rows.len() / 2).map(<[usize]>::to_vec).collect::<Vec<_>>();
        tried = halved.into_iter().flat_map(halves).collect();
    }
    let mut table = String::new();
    for (number, row) in all.iter().enumerate() {
        let answer = answers_of_rows.get(&number).map_or(GOOD, String::as_str);
        writeln!(table, "{}: {answer}", row.name).unwrap();
    }
    insta::assert_snapshot!(table);
}
