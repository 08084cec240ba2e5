//! Each file of `steps/` has tests of the command line as data: files, command lines, and what their output must have.
//!
//! A test has a `name`, and optionally:
//! - `needs`: programs, drivers, files and `$VARIABLES` without which it is skipped;
//! - `on`: `devices`, `drivers` or `driver`: it runs once for each, as `{device}`;
//! - `each` and `also`: rows: it runs once for each pair of them, with `{KEY}` replaced by the value of the row; a row with
//!   `soak = true` is for soaks;
//! - `page`: a page of docs/findings, of which `{1}`, `{2}`, … are the commands;
//! - `files` and `copy`: written to the folder in which its commands run;
//! - `step`s, whose fields are those of [`Step`].
//!
//! `{TESTS}`, `{ROOT}` and `{DIR}` are the folders of these tests, of the repository and of the test. `VK_LITMUS_STEPS=WORDS`
//! runs the tests that have the words in their names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use crate::common::{Ran, assert_valid, binary, installed, schemas, software_drivers, vk_litmus};

macro_rules! areas {
    ($($name:ident)*) => {
        /// The files of `steps/`, each of which is a test.
        const AREAS: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                run_area(stringify!($name));
            }
        )*
    };
}

areas! {
    codegen convert corpus cts dispatch drivers expect findings foreign inputs kernel languages lint missing
    progress refine reports repro run scripts shader_inputs sim small source
}

/// Every file is run.
#[test]
fn every_file_is_an_area() {
    let files = std::fs::read_dir(tests().join("steps")).unwrap();
    let mut names: Vec<String> =
        files.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, AREAS);
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    /// Values for all tests.
    #[serde(default, rename = "let")]
    values: toml::Table,
    test: Vec<toml::Table>,
}

/// A test, with the values of its row in place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Copies: the target in the folder, and the source.
    #[serde(default)]
    copy: BTreeMap<String, PathBuf>,
    step: Vec<Step>,
}

/// A command, or a file to read, and its expected output.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Arguments of the program: words, of which `'` quotes one with blanks.
    run: Option<Words>,
    /// A command of bash, with the program in the path.
    sh: Option<String>,
    /// A file of the folder that takes the place of standard output.
    read: Option<String>,
    /// Files written before.
    #[serde(default)]
    write: BTreeMap<String, String>,
    /// The folder of the command, if not that of the test.
    at: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Variables removed from the environment.
    #[serde(default)]
    unset: Vec<String>,
    /// The exit code, or one of several.
    #[serde(default)]
    code: Code,
    /// All of standard output.
    is: Option<String>,
    /// Parts of standard output.
    #[serde(default)]
    stdout: Texts,
    /// Parts of standard error, as words.
    #[serde(default)]
    stderr: Texts,
    /// Parts of one of the outputs, as words.
    #[serde(default)]
    words: Texts,
    /// Words that neither output has.
    #[serde(default)]
    lacks: Texts,
    /// The number of times that standard output has a text.
    #[serde(default)]
    count: BTreeMap<String, usize>,
    /// Number of lines of standard output.
    lines: Option<usize>,
    /// Values in the JSON of standard output, by path (see [`select`]); a table is a comparison (see [`compare`]), or `path`,
    /// the path of an equal value, in this output or in that of a file (`of`).
    #[serde(default)]
    json: BTreeMap<String, Value>,
    /// Schemas of every JSON value of standard output: `NAME`, or `NAME:CONTRACT` if the contract has another name; `-` is none.
    #[serde(default)]
    schema: Texts,
    /// Stores standard output in a file.
    save: Option<String>,
    /// A file whose text equals standard output.
    same: Option<String>,
    /// Files that exist afterwards.
    #[serde(default)]
    exists: Texts,
    /// Files that do not.
    #[serde(default)]
    absent: Texts,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Line(String),
    List(Vec<String>),
}

impl Words {
    fn split(&self) -> Vec<String> {
        let line = match self {
            Words::List(words) => return words.clone(),
            Words::Line(line) => line,
        };
        let mut words = vec![];
        for (part, text) in line.split('\'').enumerate() {
            if part % 2 == 1 {
                words.push(text.to_owned());
            } else {
                words.extend(text.split_whitespace().map(str::to_owned));
            }
        }
        words
    }
}

/// Texts: one, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::Several(Vec::new())
    }
}

impl Texts {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Several(texts) => texts,
        };
        all.iter().map(String::as_str)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Code {
    One(i32),
    Several(Vec<i32>),
}

impl Default for Code {
    fn default() -> Code {
        Code::One(0)
    }
}

fn run_area(name: &str) {
    let text = std::fs::read_to_string(tests().join("steps").join(name).with_extension("toml")).unwrap();
    let area: Area = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}.toml: {error}"));
    let only = std::env::var("VK_LITMUS_STEPS").unwrap_or_default();
    let mut failed = String::new();
    for mut test in area.test {
        let name = test.remove("name").and_then(|name| Some(name.as_str()?.to_owned())).unwrap();
        if !name.contains(&only) {
            continue;
        }
        let page = test.remove("page").and_then(|page| Some(page.as_str()?.to_owned()));
        for row in rows(&mut test) {
            let folder = tempfile::tempdir().unwrap();
            let mut values = values_of(&row, &area.values, folder.path());
            values.extend(page.iter().flat_map(|page| link_page(page, &test, folder.path())));
            let test: Test = (fill(&test.clone().into(), &values).try_into())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Err(what) = run_test(&test, folder.path()) {
                let row = if row.is_empty() { String::new() } else { format!(" with {row:?}") };
                writeln!(failed, "{name}{row}: {what}\n").unwrap();
            }
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

/// Returns the commands of a page of docs/findings by their numbers, and links the files that they name. The test has all of
/// them.
fn link_page(page: &str, test: &toml::Table, folder: &Path) -> Vec<(String, toml::Value)> {
    let root = crate::docs::root();
    for name in ["ci", "docs", "harness", "litmus"] {
        std::os::unix::fs::symlink(root.join(name), folder.join(name)).unwrap();
    }
    let text = std::fs::read_to_string(root.join("docs/findings").join(page)).unwrap();
    let commands = (1..).zip(crate::findings::commands_of(&text));
    let commands = commands.map(|(number, command): (u32, _)| (number.to_string(), command.into()));
    let commands: Vec<(String, toml::Value)> = commands.collect();
    let uses = |(number, _): &(String, _)| test.to_string().contains(&format!("{{{number}}}"));
    assert!(!commands.is_empty() && commands.iter().all(uses), "{page}");
    commands
}

/// Returns the values for a row: the folders, those of the area, which may name folders, and its own, which may name both.
fn values_of(row: &toml::Table, of_area: &toml::Table, folder: &Path) -> toml::Table {
    let root = tests().join("../../../..").canonicalize().unwrap();
    let folders = [("TESTS", tests()), ("ROOT", root), ("DIR", folder.to_owned())];
    let folders = folders.map(|(key, path)| (key.to_owned(), path.display().to_string().into()));
    [of_area, row].into_iter().fold(toml::Table::from_iter(folders), |known, new| {
        let filled = new.iter().map(|(key, value)| (key.clone(), fill(value, &known)));
        known.clone().into_iter().chain(filled).collect()
    })
}

/// Takes the rows of a test: the product of its devices, `each` and `also`.
fn rows(test: &mut toml::Table) -> Vec<toml::Table> {
    let devices = match test.remove("on") {
        None => vec![toml::Table::new()],
        Some(on) => {
            let mut names = software_drivers();
            match on.as_str() {
                Some("devices") => names.insert(0, "sim"),
                Some("driver") => names.truncate(1),
                other => assert_eq!(other, Some("drivers")),
            }
            names.iter().map(|name| toml::Table::from_iter([("device".to_owned(), (*name).into())])).collect()
        }
    };
    let is_soak = std::env::var_os("VK_LITMUS_SOAK").is_some();
    ["each", "also"].iter().fold(devices, |rows, key| {
        let Some(list) = test.remove(*key) else { return rows };
        let list: Vec<toml::Table> = list.try_into().unwrap();
        let join = |row: &toml::Table| {
            let row = row.clone();
            let kept = list.iter().filter(|new| is_soak || !new.contains_key("soak"));
            kept.map(move |new| row.clone().into_iter().chain(new.clone()).collect()).collect::<Vec<_>>()
        };
        rows.iter().flat_map(join).collect()
    })
}

/// Replaces `{KEY}` in all strings; one that is nothing else becomes the value itself.
fn fill(value: &toml::Value, values: &toml::Table) -> toml::Value {
    match value {
        toml::Value::String(text) => {
            let whole = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            if let Some(value) = whole.and_then(|key| values.get(key)) {
                return value.clone();
            }
            let replaced = values.iter().fold(text.clone(), |text, (key, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                text.replace(&format!("{{{key}}}"), &value)
            });
            toml::Value::String(replaced)
        }
        toml::Value::Array(list) => {
            toml::Value::Array(list.iter().map(|value| fill(value, values)).collect())
        }
        toml::Value::Table(table) => {
            let entry = |(key, value): (&String, &toml::Value)| {
                let key = fill(&toml::Value::String(key.clone()), values);
                (key.as_str().unwrap_or_default().to_owned(), fill(value, values))
            };
            toml::Value::Table(table.iter().map(entry).collect())
        }
        other => other.clone(),
    }
}

/// Returns true if a driver, the variable `$NAME` or a program is there; otherwise prints a skip.
fn is_met(what: &str) -> bool {
    match (what, what.strip_prefix('$')) {
        ("sim", _) => true,
        (path, _) if path.starts_with('/') => {
            let is_there = Path::new(path).exists();
            if !is_there {
                println!("1 skipped: {path} is not there");
            }
            is_there
        }
        ("radv", _) => crate::codegen::has_radv(),
        ("lavapipe" | "swiftshader", _) => software_drivers().contains(&what),
        (_, Some(variable)) => {
            let is_set = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
            if !is_set {
                println!("1 skipped: {variable} is not set");
            }
            is_set
        }
        _ => installed(what),
    }
}

fn run_test(test: &Test, folder: &Path) -> Result<(), String> {
    if !test.needs.iter().all(|what| is_met(what)) {
        return Ok(());
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    test.files.iter().for_each(|(name, text)| write(name, text));
    for (to, from) in &test.copy {
        std::fs::create_dir_all(folder.join(to).parent().unwrap()).unwrap();
        std::fs::copy(from, folder.join(to)).unwrap();
    }
    for (number, step) in test.step.iter().enumerate() {
        step.write.iter().for_each(|(name, text)| write(name, text));
        let ran = step.execute(folder);
        let wrong = step.find_difference(&ran, folder);
        if let Some(wrong) = wrong {
            let (stdout, stderr) = (&ran.stdout, &ran.stderr);
            return Err(format!("step {number}: {wrong}\nexit code {}\n{stdout}\n{stderr}", ran.code));
        }
        if let Some(name) = &step.save {
            write(name, &ran.stdout);
        }
    }
    Ok(())
}

impl Step {
    fn execute(&self, folder: &Path) -> Ran {
        let mut command = match (&self.run, &self.sh, &self.read) {
            (Some(words), None, None) => vk_litmus(words.split().iter().map(String::as_str)),
            (None, Some(script), None) => {
                let program = binary();
                let path =
                    format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
                let mut command = Command::new("bash");
                command.args(["-c", script]).env("PATH", path).env("NO_COLOR", "1");
                command
            }
            (None, None, Some(name)) => {
                let stdout = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
                return Ran { code: 0, stdout, stderr: String::new() };
            }
            _ => panic!("a step has one of `run`, `sh` and `read`"),
        };
        command.current_dir(self.at.as_deref().unwrap_or(folder)).envs(&self.env);
        for name in &self.unset {
            command.env_remove(name);
        }
        Ran::run(&mut command)
    }

    /// Returns the first expectation that the output does not meet.
    fn find_difference(&self, ran: &Ran, folder: &Path) -> Option<String> {
        let is_expected = match &self.code {
            Code::One(code) => ran.code == *code,
            Code::Several(codes) => codes.contains(&ran.code),
        };
        if !is_expected || ran.stderr.contains("panicked") {
            return Some("its exit code".to_owned());
        }
        if self.is.as_ref().is_some_and(|text| *text != ran.stdout) {
            return Some("all of its output".to_owned());
        }
        let (errors, both) = (ran.messages(), ran.words());
        for (texts, output, has) in
            [(&self.stderr, &errors, true), (&self.words, &both, true), (&self.lacks, &both, false)]
        {
            if let Some(text) = texts.iter().find(|text| output.contains(&words(text)) != has) {
                return Some(format!("{text:?}"));
            }
        }
        if let Some(text) = self.stdout.iter().find(|text| !ran.stdout.contains(text)) {
            return Some(format!("{text:?} in standard output"));
        }
        for (text, count) in &self.count {
            let found = ran.stdout.matches(text.as_str()).count();
            if found != *count {
                return Some(format!("{text:?} {count} times, not {found}"));
            }
        }
        let lines = ran.stdout.lines().count();
        if self.lines.is_some_and(|expected| expected != lines) {
            return Some(format!("{lines} lines"));
        }
        self.find_json_difference(ran, folder).or_else(|| {
            if let Some(name) = &self.same
                && std::fs::read_to_string(folder.join(name)).unwrap() != ran.stdout
            {
                return Some(format!("its output and {name}"));
            }
            let there = |name: &&str| std::fs::symlink_metadata(folder.join(name)).is_ok();
            let missing = self.exists.iter().find(|name| !there(name));
            missing.or_else(|| self.absent.iter().find(there)).map(|name| format!("the file {name}"))
        })
    }

    fn find_json_difference(&self, ran: &Ran, folder: &Path) -> Option<String> {
        if self.json.is_empty() && self.schema.iter().next().is_none() {
            return None;
        }
        let values = match parse_values(&ran.stdout) {
            Ok(values) => values,
            Err(error) => return Some(format!("no JSON: {error}")),
        };
        for schema in self.schema.iter() {
            let (name, contract) = schema.split_once(':').unwrap_or((schema, schema));
            let files = schemas(&format!("{name}.schema.json"), &format!("{contract}.schema.json"));
            for file in files.iter().skip(usize::from(name == "-")) {
                values.as_array().into_iter().flatten().for_each(|value| assert_valid(file, value));
            }
        }
        self.json.iter().find_map(|(path, expected)| {
            let found = select(&values, path);
            let other =
                expected.get("path").and_then(Value::as_str).map(|path| match expected["of"].as_str() {
                    Some(name) => select(
                        &parse_values(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap(),
                        path,
                    ),
                    None => select(&values, path),
                });
            let is_expected =
                other.as_ref().map_or_else(|| compare(&found, expected), |other| *other == found);
            (!is_expected).then(|| format!("{path}: {found}, not {}", other.as_ref().unwrap_or(expected)))
        })
    }
}

/// Returns the list of the JSON values of a text.
fn parse_values(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::Deserializer::from_str(text).into_iter::<Value>().collect()
}

/// Returns a text as it is, and any other value as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the value at a path in the list of JSON values of an output; `null` if there is none.
///
/// Words of a path, in which `~` is a blank: an index (`-1` is the last), a key, `KEY=VALUE` (the first element with it), `KEY==VALUE` (the list of
/// all), `*` (the rest of the path in
/// each element), `#` (the number of elements). `sum` before paths with `+` between them adds their numbers.
fn select(value: &Value, path: &str) -> Value {
    if let Some(paths) = path.strip_prefix("sum ") {
        let sum_of = |path| match select(value, path) {
            Value::Array(numbers) => numbers.iter().filter_map(Value::as_u64).sum(),
            number => number.as_u64().unwrap_or_default(),
        };
        return paths.split(" + ").map(sum_of).sum::<u64>().into();
    }
    let (word, rest) = path.split_once(' ').unwrap_or((path, ""));
    let word = &*word.replace('~', " ");
    let list = value.as_array();
    let next = match (word, word.parse::<i64>(), word.split_once('=')) {
        ("", ..) => return value.clone(),
        ("#", ..) => return list.map_or(0, Vec::len).into(),
        ("*", ..) => return list.into_iter().flatten().map(|value| select(value, rest)).collect(),
        (_, Ok(index), _) if index < 0 => {
            list.and_then(|list| list.iter().rev().nth(index.unsigned_abs() as usize - 1))
        }
        (_, Ok(index), _) => list.and_then(|list| list.get(index as usize)),
        (_, _, Some((key, text))) if text.starts_with('=') => {
            let is_same = |value: &&Value| text_of(&value[key]) == text[1..];
            return select(&list.into_iter().flatten().filter(is_same).cloned().collect(), rest);
        }
        (_, _, Some((key, text))) => {
            list.and_then(|list| list.iter().find(|value| text_of(&value[key]) == text))
        }
        _ => value.get(word),
    };
    next.map_or(Value::Null, |value| select(value, rest))
}

/// Returns true if a value is the expected one, a list of such values, or meets each of the expected comparisons.
///
/// For texts, and any other value as JSON: `has` (one or several), `lacks`, `starts`, `ends`. For numbers: `min`, `max`. For
/// lists: `every` element, `all` elements of a list that is not empty, `any` element. For objects: `at` (values by path). `not`
/// is another value, `null = true` none, and `either` a list of which one holds. `unique` and `sorted` are about lists of texts.
fn compare(found: &Value, expected: &Value) -> bool {
    let comparisons = match expected {
        Value::Object(comparisons) => comparisons,
        Value::Array(all) => {
            let is_same = |found: &Vec<Value>| {
                found.len() == all.len()
                    && found.iter().zip(all).all(|(found, expected)| compare(found, expected))
            };
            return found.as_array().is_some_and(is_same);
        }
        _ => return found == expected,
    };
    let text = text_of(found);
    comparisons.iter().all(|(comparison, operand)| {
        let word = operand.as_str().unwrap_or_default();
        let elements = || found.as_array().into_iter().flatten();
        match comparison.as_str() {
            "has" => match operand.as_array() {
                Some(words) => words.iter().all(|word| text.contains(word.as_str().unwrap_or_default())),
                None => text.contains(word),
            },
            "lacks" => !text.contains(word),
            "starts" => text.starts_with(word),
            "ends" => text.ends_with(word),
            "min" => found.as_f64() >= operand.as_f64(),
            "max" => found.as_f64().is_some_and(|found| Some(found) <= operand.as_f64()),
            "not" => found != operand,
            "null" => found.is_null() == (*operand == Value::Bool(true)),
            "all" => elements().count() > 0 && elements().all(|element| compare(element, operand)),
            "every" => elements().all(|element| compare(element, operand)),
            "unique" => elements().all(|element| elements().filter(|other| *other == element).count() == 1),
            "sorted" => {
                found.as_array().is_some_and(|list| list.is_sorted_by_key(|element| element.as_str()))
            }
            "any" => elements().any(|element| compare(element, operand)),
            "either" => operand.as_array().is_some_and(|all| all.iter().any(|one| compare(found, one))),
            "at" => (operand.as_object().into_iter().flatten())
                .all(|(path, expected)| compare(&select(found, path), expected)),
            other => panic!("unknown comparison `{other}`"),
        }
    })
}
