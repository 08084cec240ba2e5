//! The main loop: documents, debounced analyses, and requests.
//!
//! One thread owns all state. It receives messages of the editor and results of jobs from one channel, and starts
//! an analysis when its document has not changed for a moment. A request that takes time is a job as well; the
//! editor may cancel it.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use campaign::temporary::TemporaryFolder;
use editor::{DocumentLanguage, TextProblem};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response, ResponseError};
use lsp_types::notification::{
    Cancel as CancelRequest, DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument,
    DidSaveTextDocument, Exit, Notification as _, PublishDiagnostics, ShowMessage,
};
use lsp_types::request::{
    CodeActionRequest, CodeLensRefresh, CodeLensRequest, Completion, ExecuteCommand, Formatting,
    HoverRequest, Request as _, Shutdown,
};
use lsp_types::{
    CancelParams, CodeActionParams, CodeLens, CodeLensParams, Command, CompletionItem, CompletionItemKind,
    CompletionParams, CompletionTextEdit, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, DocumentFormattingParams, ExecuteCommandParams,
    Hover, HoverContents, HoverParams, MarkupContent, MarkupKind, MessageType, NumberOrString, Position,
    PublishDiagnosticsParams, Range, ShowMessageParams, TextEdit, Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shader_source::scan::line_range;

use crate::child::{CancelFlag, ChildCommand, ChildError, ChildLimit, run_child};
use crate::detect::detect_language;
use crate::diagnose::diagnose;
use crate::document::{Document, DocumentText, file_path};
use crate::format::format;
use crate::jobs::{DocumentAnalysis, EditorVerdict, LoopInput, spawn_job};
use crate::publish;
use crate::settings::EditorSettings;
use crate::shader::{REFUSED, ShaderJob};
use crate::transport::StdioThreads;
use crate::verdict::describe_verdict;

/// The time without an edit after which a text is analysed.
const TEXT_DELAY: Duration = Duration::from_millis(20);
/// The time without an edit after which a shader is linted.
const LINT_DELAY: Duration = Duration::from_millis(80);
/// Time for starting and ending a child beyond its own limit.
const GRACE_TIME: Duration = Duration::from_secs(2);
/// The command of the code lens above a test.
const CHECK_COMMAND: &str = "vk-litmus.check";
/// The command of the code lens above a shader.
const RACE_COMMAND: &str = "vk-litmus.race";

/// An error that ends the server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the editor does not follow the protocol: {0}")]
    Protocol(#[from] lsp_server::ProtocolError),
    /// Standard input or output failed, or the folder for temporary files does not exist.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// Serves an editor over standard input and output until it ends the connection.
///
/// `program` is the program whose commands run as children. Returns true if the editor requested the end.
///
/// # Errors
/// If the connection fails or the editor does not follow the protocol.
pub fn serve(program: PathBuf) -> Result<bool, ServeError> {
    let (connection, threads) = StdioThreads::start()?;
    let (id, parameters) = match connection.initialize_start() {
        Ok(started) => started,
        Err(error) => {
            threads.input_error()?;
            return Err(error.into());
        }
    };
    let answer = json!({
        "capabilities": capabilities(),
        "serverInfo": { "name": "vk-litmus", "version": env!("CARGO_PKG_VERSION") },
    });
    connection.initialize_finish(id, answer)?;
    let (events, inbox) = channel();
    let messages = connection.receiver.clone();
    let forward = events.clone();
    let forwarder = std::thread::spawn(move || {
        for message in messages {
            if forward.send(LoopInput::Message(message)).is_err() {
                return;
            }
        }
        drop(forward.send(LoopInput::ConnectionClosed));
    });
    let mut server = Server::new(program, connection, events, &parameters)?;
    let was_requested = server.serve(&inbox);
    // The threads of the connection end with its channels.
    drop(inbox);
    drop(server);
    if was_requested {
        drop(forwarder.join());
        threads.join()?;
    } else {
        threads.input_error()?;
    }
    Ok(was_requested)
}

fn capabilities() -> Value {
    json!({
        "positionEncoding": "utf-16",
        "textDocumentSync": { "openClose": true, "change": 2, "save": { "includeText": false } },
        "hoverProvider": true,
        "completionProvider": { "triggerCharacters": [".", "@", ",", "/"] },
        "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        "codeLensProvider": { "resolveProvider": false },
        "documentFormattingProvider": true,
        "executeCommandProvider": { "commands": [CHECK_COMMAND, RACE_COMMAND] },
    })
}

/// The problems of one analysis of a document.
struct DocumentProblems {
    version: i32,
    problems: Vec<TextProblem>,
}

/// The state of the server.
struct Server {
    program: PathBuf,
    connection: Connection,
    events: Sender<LoopInput>,
    settings: EditorSettings,
    /// True if the editor refreshes code lenses on request.
    can_refresh_lenses: bool,
    /// Open documents by address.
    documents: BTreeMap<String, Document>,
    due_times: BTreeMap<(String, DocumentAnalysis), Instant>,
    running_analyses: BTreeMap<(String, DocumentAnalysis), CancelFlag>,
    running_requests: HashMap<RequestId, CancelFlag>,
    problems: BTreeMap<(String, DocumentAnalysis), DocumentProblems>,
    verdicts: BTreeMap<String, EditorVerdict>,
    slots: ChildLimit,
    scratch_folder: TemporaryFolder,
    /// The number of requests to the editor.
    sent_requests: i32,
    is_shut_down: bool,
}

/// The answer to a request: immediate, or by a job.
enum Reply {
    Immediate(Value),
    Deferred,
}

impl Server {
    fn new(
        program: PathBuf,
        connection: Connection,
        events: Sender<LoopInput>,
        parameters: &Value,
    ) -> Result<Server, ServeError> {
        let options = parameters.get("initializationOptions").filter(|options| !options.is_null());
        let settings = options
            .map_or_else(|| Ok(EditorSettings::default()), |given| serde_json::from_value(given.clone()));
        let refreshes = parameters.pointer("/capabilities/workspace/codeLens/refreshSupport");
        let mut server = Server {
            program,
            connection,
            events,
            settings: EditorSettings::default(),
            can_refresh_lenses: refreshes.and_then(Value::as_bool).unwrap_or(false),
            documents: BTreeMap::new(),
            due_times: BTreeMap::new(),
            running_analyses: BTreeMap::new(),
            running_requests: HashMap::new(),
            problems: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            slots: ChildLimit::default(),
            scratch_folder: TemporaryFolder::create()?,
            sent_requests: 0,
            is_shut_down: false,
        };
        match settings {
            Ok(settings) => server.settings = settings,
            Err(error) => server.show_message(
                MessageType::WARNING,
                format!("initializationOptions: {error}; defaults apply"),
            ),
        }
        Ok(server)
    }

    /// Handles events until the editor ends the connection; returns true if it requested the end.
    fn serve(&mut self, inbox: &Receiver<LoopInput>) -> bool {
        loop {
            self.start_due_analyses();
            let next = self.due_times.values().min().map(|due| due.saturating_duration_since(Instant::now()));
            let event = match next {
                Some(wait) => match inbox.recv_timeout(wait) {
                    Ok(event) => event,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => LoopInput::ConnectionClosed,
                },
                None => inbox.recv().unwrap_or(LoopInput::ConnectionClosed),
            };
            match event {
                LoopInput::Message(Message::Request(request)) => self.on_request(request),
                LoopInput::Message(Message::Notification(notification)) => {
                    if notification.method == Exit::METHOD {
                        break;
                    }
                    let handled = catch_unwind(AssertUnwindSafe(|| self.on_notification(notification)));
                    match handled {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => tracing::warn!("a notification of the editor: {error}"),
                        Err(_) => tracing::warn!("a notification of the editor could not be handled"),
                    }
                }
                LoopInput::Message(Message::Response(_)) => {}
                LoopInput::ConnectionClosed => break,
                LoopInput::AnalysisFinished { address, version, analysis, problems } => {
                    self.on_analysed(address, version, analysis, problems);
                }
                LoopInput::RequestAnswered { id, answer, verdict } => self.on_answered(id, answer, verdict),
            }
        }
        self.running_analyses.values().chain(self.running_requests.values()).for_each(CancelFlag::cancel);
        self.is_shut_down
    }

    fn send(&self, message: impl Into<Message>) {
        // The editor may have disconnected; the main loop detects that by the closed channel.
        drop(self.connection.sender.send(message.into()));
    }

    fn notify(&self, method: &str, parameters: impl Serialize) {
        self.send(Notification::new(method.to_owned(), parameters));
    }

    fn show_message(&self, typ: MessageType, message: String) {
        self.notify(ShowMessage::METHOD, ShowMessageParams { typ, message });
    }

    fn on_request(&mut self, request: Request) {
        let id = request.id.clone();
        let answer = if self.is_shut_down {
            Err(response_error(ErrorCode::InvalidRequest, "the server is shutting down"))
        } else {
            catch_unwind(AssertUnwindSafe(|| self.handle_request(request))).unwrap_or_else(|_| {
                Err(response_error(ErrorCode::InternalError, "the request could not be handled"))
            })
        };
        match answer {
            Ok(Reply::Deferred) => {}
            Ok(Reply::Immediate(value)) => self.send(Response::new_ok(id, value)),
            Err(error) => self.send(Response::new_err(id, error.code, error.message)),
        }
    }

    fn handle_request(&mut self, request: Request) -> Result<Reply, ResponseError> {
        let value = match request.method.as_str() {
            Shutdown::METHOD => {
                self.is_shut_down = true;
                Value::Null
            }
            HoverRequest::METHOD => json!(self.hover(&parse_parameters(request.params)?)),
            Completion::METHOD => json!(self.complete(&parse_parameters(request.params)?)),
            CodeActionRequest::METHOD => json!(self.code_actions(&parse_parameters(request.params)?)),
            CodeLensRequest::METHOD => json!(self.code_lenses(&parse_parameters(request.params)?)),
            Formatting::METHOD => json!(self.format(&parse_parameters(request.params)?)),
            ExecuteCommand::METHOD => {
                return self.execute_command(request.id, &parse_parameters(request.params)?);
            }
            other => {
                return Err(response_error(
                    ErrorCode::MethodNotFound,
                    &format!("`{other}` is not supported"),
                ));
            }
        };
        Ok(Reply::Immediate(value))
    }

    fn on_notification(&mut self, notification: Notification) -> Result<(), serde_json::Error> {
        let parameters = notification.params;
        match notification.method.as_str() {
            DidOpenTextDocument::METHOD => {
                let opened = serde_json::from_value::<DidOpenTextDocumentParams>(parameters)?.text_document;
                let address = opened.uri.as_str().to_owned();
                let file = file_path(&address);
                let is_file = file.is_some();
                let path = file.unwrap_or_else(|| PathBuf::from(&address));
                let language = detect_language(&path.to_string_lossy(), &opened.language_id, &opened.text);
                let text = DocumentText::new(&opened.text);
                let document = Document { version: opened.version, text, language, path, is_file };
                self.documents.insert(address.clone(), document);
                self.on_edited(&address);
                self.on_saved(&address);
            }
            DidChangeTextDocument::METHOD => {
                let changed: DidChangeTextDocumentParams = serde_json::from_value(parameters)?;
                let address = changed.text_document.uri.as_str().to_owned();
                if let Some(document) = self.documents.get_mut(&address) {
                    // Races stay until the next save, at the lines where they were found.
                    let mut stale = self.problems.get_mut(&(address.clone(), DocumentAnalysis::Race));
                    for change in &changed.content_changes {
                        let replaced = document.text.replaced_range(change);
                        let problems = stale.iter_mut().flat_map(|found| &mut found.problems);
                        problems.for_each(|problem| problem.shift(&replaced, change.text.len()));
                        document.text = document.text.apply_edit(change);
                    }
                    document.version = changed.text_document.version;
                    self.on_edited(&address);
                }
            }
            DidSaveTextDocument::METHOD => {
                let saved: DidSaveTextDocumentParams = serde_json::from_value(parameters)?;
                self.on_saved(saved.text_document.uri.as_str());
            }
            DidCloseTextDocument::METHOD => {
                let closed: DidCloseTextDocumentParams = serde_json::from_value(parameters)?;
                let uri = closed.text_document.uri;
                self.close_document(uri.as_str());
                self.notify(
                    PublishDiagnostics::METHOD,
                    PublishDiagnosticsParams { uri, diagnostics: Vec::new(), version: None },
                );
            }
            CancelRequest::METHOD => {
                let cancelled: CancelParams = serde_json::from_value(parameters)?;
                let id = match cancelled.id {
                    NumberOrString::Number(id) => RequestId::from(id),
                    NumberOrString::String(id) => RequestId::from(id),
                };
                if let Some(cancel) = self.running_requests.get(&id) {
                    cancel.cancel();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Schedules the analyses of a changed text.
    fn on_edited(&mut self, address: &str) {
        let Some(language) = self.documents.get(address).and_then(|document| document.language) else {
            return;
        };
        let (analysis, delay) = match language {
            DocumentLanguage::Shader if self.settings.lint => (DocumentAnalysis::Lint, LINT_DELAY),
            DocumentLanguage::Shader => return,
            _ => (DocumentAnalysis::Text, TEXT_DELAY),
        };
        self.due_times.insert((address.to_owned(), analysis), Instant::now() + delay);
    }

    /// Schedules the analyses of a saved file.
    fn on_saved(&mut self, address: &str) {
        let Some(document) = self.documents.get(address) else { return };
        if self.settings.race && document.is_file && document.language == Some(DocumentLanguage::Shader) {
            self.due_times.insert((address.to_owned(), DocumentAnalysis::Race), Instant::now());
        }
    }

    fn close_document(&mut self, address: &str) {
        self.documents.remove(address);
        self.verdicts.remove(address);
        for analysis in [DocumentAnalysis::Text, DocumentAnalysis::Lint, DocumentAnalysis::Race] {
            let key = (address.to_owned(), analysis);
            self.due_times.remove(&key);
            self.problems.remove(&key);
            if let Some(cancel) = self.running_analyses.remove(&key) {
                cancel.cancel();
            }
        }
    }

    /// Starts the analyses whose time has come.
    fn start_due_analyses(&mut self) {
        let now = Instant::now();
        let due: Vec<_> =
            self.due_times.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.due_times.remove(&key);
            self.analyse(key.0, key.1);
        }
    }

    /// Starts an analysis, and cancels the one of an earlier version.
    fn analyse(&mut self, address: String, analysis: DocumentAnalysis) {
        let Some(document) = self.documents.get(&address).cloned() else { return };
        let Some(language) = document.language else { return };
        let cancel = CancelFlag::default();
        if let Some(earlier) = self.running_analyses.insert((address.clone(), analysis), cancel.clone()) {
            earlier.cancel();
        }
        let version = document.version;
        let on_panic = {
            let address = address.clone();
            move || LoopInput::AnalysisFinished { address, version, analysis, problems: None }
        };
        let (program, settings) = (self.program.clone(), self.settings.clone());
        let (slots, scratch) = (self.slots.clone(), self.scratch_folder.path().to_owned());
        let work = move || {
            let job = ShaderJob {
                program: &program,
                path: &document.path,
                text: document.text.content(),
                is_file: document.is_file,
                settings: &settings,
                slots: &slots,
                cancel: &cancel,
            };
            let problems = match analysis {
                DocumentAnalysis::Text => Ok(diagnose(language, &document.path, document.text.content())),
                DocumentAnalysis::Lint => job.lint(&scratch),
                DocumentAnalysis::Race => job.race(&scratch),
            };
            LoopInput::AnalysisFinished {
                address,
                version,
                analysis,
                problems: analysis_problems(problems, analysis),
            }
        };
        spawn_job(&self.events, work, on_panic);
    }

    fn on_analysed(
        &mut self,
        address: String,
        version: i32,
        analysis: DocumentAnalysis,
        problems: Option<Vec<TextProblem>>,
    ) {
        let Some(document) = self.documents.get(&address) else { return };
        // `race` is about the saved file; the others are out of date with the next edit.
        let current = document.version == version || analysis == DocumentAnalysis::Race;
        let Some(problems) = problems.filter(|_| current) else { return };
        self.problems.insert((address.clone(), analysis), DocumentProblems { version, problems });
        self.publish_diagnostics(&address);
    }

    fn document_problems<'s>(&'s self, address: &'s str) -> impl Iterator<Item = (i32, &'s TextProblem)> {
        let found = self.problems.iter().filter(move |((other_address, _), _)| other_address == address);
        found.flat_map(|(_, found)| found.problems.iter().map(|problem| (found.version, problem)))
    }

    fn publish_diagnostics(&self, address: &str) {
        let (Some(document), Ok(uri)) = (self.documents.get(address), Uri::from_str(address)) else { return };
        let mut diagnostics = Vec::new();
        // Races of an earlier version say nothing about a text that does not compile.
        let lint = self.problems.get(&(address.to_owned(), DocumentAnalysis::Lint));
        let is_refused =
            lint.is_some_and(|found| found.problems.iter().any(|problem| problem.code == REFUSED));
        let shown = |version: &i32| !is_refused || *version == document.version;
        for (_, problem) in self.document_problems(address).filter(|(version, _)| shown(version)) {
            let diagnostic = publish::to_diagnostic(&uri, &document.text, problem);
            // A shader that does not compile is refused by `lint` and by `race`.
            let is_duplicate = |known: &lsp_types::Diagnostic| {
                known.range == diagnostic.range && known.message == diagnostic.message
            };
            if !diagnostics.iter().any(is_duplicate) {
                diagnostics.push(diagnostic);
            }
        }
        let version = Some(document.version);
        self.notify(PublishDiagnostics::METHOD, PublishDiagnosticsParams { uri, diagnostics, version });
    }

    fn hover(&self, parameters: &HoverParams) -> Option<Hover> {
        let at = &parameters.text_document_position_params;
        let document = self.documents.get(at.text_document.uri.as_str())?;
        let text = &document.text;
        let found = editor::hover(document.language?, text.content(), text.offset_of(at.position))?;
        let contents = MarkupContent { kind: MarkupKind::Markdown, value: found.markdown };
        Some(Hover { contents: HoverContents::Markup(contents), range: Some(text.range_of(&found.range)) })
    }

    fn complete(&self, parameters: &CompletionParams) -> Option<Vec<CompletionItem>> {
        let at = &parameters.text_document_position;
        let document = self.documents.get(at.text_document.uri.as_str())?;
        let text = &document.text;
        let found = editor::complete(document.language?, text.content(), text.offset_of(at.position));
        let range = text.range_of(&found.range);
        let item = |candidate: editor::ProposedWord| CompletionItem {
            label: candidate.word.clone(),
            kind: Some(CompletionItemKind::KEYWORD),
            detail: Some(candidate.meaning).filter(|meaning| !meaning.is_empty()),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text: candidate.word })),
            ..CompletionItem::default()
        };
        Some(found.candidates.into_iter().map(item).collect())
    }

    fn code_actions(&self, parameters: &CodeActionParams) -> Option<Vec<Value>> {
        let uri = &parameters.text_document.uri;
        let document = self.documents.get(uri.as_str())?;
        let problems = self.document_problems(uri.as_str());
        // The ranges of an older version are no longer valid.
        let current =
            problems.filter(|(version, _)| *version == document.version).map(|(_, problem)| problem);
        Some(publish::code_actions(uri, &document.text, current, parameters.range))
    }

    fn code_lenses(&self, parameters: &CodeLensParams) -> Option<Vec<CodeLens>> {
        let address = parameters.text_document.uri.as_str();
        let document = self.documents.get(address)?;
        let text = document.text.content();
        let (title, command, offset) = match document.language? {
            DocumentLanguage::Litmus => {
                let question = ["exists", "~exists", "forall", "final"];
                let start = text.lines().position(|line| question.iter().any(|word| line.starts_with(word)));
                ("check", CHECK_COMMAND, line_range(text, start.map_or(1, |line| line + 1)).start)
            }
            DocumentLanguage::Shader if document.is_file => ("race", RACE_COMMAND, 0),
            _ => return Some(Vec::new()),
        };
        let known = self.verdicts.get(address).filter(|verdict| verdict.version == document.version);
        let title =
            known.map_or_else(|| title.to_owned(), |verdict| format!("{title}: {}", verdict.description));
        let at: Position = document.text.position_of(offset);
        let command = Command { title, command: command.to_owned(), arguments: Some(vec![json!(address)]) };
        Some(vec![CodeLens { range: Range { start: at, end: at }, command: Some(command), data: None }])
    }

    fn format(&self, parameters: &DocumentFormattingParams) -> Option<Vec<TextEdit>> {
        let document = self.documents.get(parameters.text_document.uri.as_str())?;
        if document.language? != DocumentLanguage::Litmus {
            return None;
        }
        let text = document.text.content();
        let name = document.path.file_name().unwrap_or_default().to_string_lossy();
        let new_text = format(text, &name)?;
        Some(vec![TextEdit { range: document.text.range_of(&(0..text.len())), new_text }])
    }

    /// Starts the command of a code lens.
    fn execute_command(
        &mut self,
        id: RequestId,
        parameters: &ExecuteCommandParams,
    ) -> Result<Reply, ResponseError> {
        let address = parameters.arguments.first().and_then(Value::as_str).unwrap_or_default().to_owned();
        let document = self.documents.get(&address).cloned();
        let document =
            document.ok_or_else(|| response_error(ErrorCode::InvalidParams, "the document is not open"))?;
        let is_check = match parameters.command.as_str() {
            CHECK_COMMAND => true,
            RACE_COMMAND => false,
            other => {
                return Err(response_error(ErrorCode::InvalidParams, &format!("`{other}` is not a command")));
            }
        };
        let cancel = CancelFlag::default();
        self.running_requests.insert(id.clone(), cancel.clone());
        let (program, settings, slots) = (self.program.clone(), self.settings.clone(), self.slots.clone());
        let on_panic = {
            let id = id.clone();
            move || {
                let answer = Err(response_error(ErrorCode::InternalError, "the command failed"));
                LoopInput::RequestAnswered { id, answer, verdict: None }
            }
        };
        let work = move || {
            let words = if is_check {
                check_document(&document, &program, &settings, &slots, &cancel)
            } else {
                check_races(&document, &program, &settings, &slots, &cancel)
            };
            let verdict =
                words.map(|words| EditorVerdict { address, version: document.version, description: words });
            match verdict {
                Ok(verdict) => {
                    let answer = Ok(json!({ "verdict": verdict.description }));
                    LoopInput::RequestAnswered { id, answer, verdict: Some(verdict) }
                }
                Err(ChildError::Cancelled) => {
                    let answer = Err(response_error(ErrorCode::RequestCanceled, "cancelled"));
                    LoopInput::RequestAnswered { id, answer, verdict: None }
                }
                Err(other) => {
                    let answer = Err(response_error(ErrorCode::RequestFailed, &other.to_string()));
                    LoopInput::RequestAnswered { id, answer, verdict: None }
                }
            }
        };
        spawn_job(&self.events, work, on_panic);
        Ok(Reply::Deferred)
    }

    fn on_answered(
        &mut self,
        id: RequestId,
        answer: Result<Value, ResponseError>,
        verdict: Option<EditorVerdict>,
    ) {
        self.running_requests.remove(&id);
        match answer {
            Ok(value) => self.send(Response::new_ok(id, value)),
            Err(error) => self.send(Response::new_err(id, error.code, error.message)),
        }
        let Some(verdict) = verdict else { return };
        self.show_message(MessageType::INFO, verdict.description.clone());
        self.verdicts.insert(verdict.address.clone(), verdict);
        if self.can_refresh_lenses {
            self.sent_requests += 1;
            let id = RequestId::from(self.sent_requests);
            self.send(Request { id, method: CodeLensRefresh::METHOD.to_owned(), params: Value::Null });
        }
    }
}

/// Returns the problems of an analysis; one for a child that failed, none for one that was cancelled.
fn analysis_problems(
    problems: Result<Vec<TextProblem>, ChildError>,
    analysis: DocumentAnalysis,
) -> Option<Vec<TextProblem>> {
    match problems {
        Ok(problems) => Some(problems),
        Err(ChildError::Cancelled) => None,
        Err(error @ (ChildError::TimedOut(_) | ChildError::System(_))) => {
            let command = match analysis {
                DocumentAnalysis::Text => "the parser",
                DocumentAnalysis::Lint => "`lint`",
                DocumentAnalysis::Race => "`race`",
            };
            let message = format!("{command}: {error}");
            Some(vec![TextProblem::new(0..0, editor::Severity::Information, "limit", message)])
        }
    }
}

/// Checks the text of a test; returns the verdict in words.
fn check_document(
    document: &Document,
    program: &std::path::Path,
    settings: &EditorSettings,
    slots: &ChildLimit,
    cancel: &CancelFlag,
) -> Result<String, ChildError> {
    let limit = settings.check_limit();
    let seconds = format!("{}s", limit.as_secs());
    let arguments =
        ["check", "--format", "json", "--timeout", &seconds, "-"].map(std::ffi::OsStr::new).into();
    let folder = document.path.parent().filter(|_| document.is_file).unwrap_or(std::path::Path::new("."));
    let folder = if folder.is_dir() { folder } else { std::path::Path::new(".") };
    let command = ChildCommand {
        program,
        arguments,
        folder,
        input: document.text.content(),
        time_limit: limit + GRACE_TIME,
    };
    Ok(describe_verdict(&run_child(&command, slots, &|| cancel.is_cancelled())?))
}

/// Checks a saved shader for races; returns the number of findings in words.
fn check_races(
    document: &Document,
    program: &std::path::Path,
    settings: &EditorSettings,
    slots: &ChildLimit,
    cancel: &CancelFlag,
) -> Result<String, ChildError> {
    let job = ShaderJob {
        program,
        path: &document.path,
        text: document.text.content(),
        is_file: document.is_file,
        settings,
        slots,
        cancel,
    };
    let problems = job.race(&std::env::temp_dir())?;
    Ok(match problems.as_slice() {
        [] => "no finding".to_owned(),
        [only] => only.message.clone(),
        [first, others @ ..] => format!("{} (and {} more)", first.message, others.len()),
    })
}

fn parse_parameters<T: DeserializeOwned>(parameters: Value) -> Result<T, ResponseError> {
    serde_json::from_value(parameters)
        .map_err(|cause| response_error(ErrorCode::InvalidParams, &cause.to_string()))
}

fn response_error(code: ErrorCode, message: &str) -> ResponseError {
    ResponseError { code: code as i32, message: message.to_owned(), data: None }
}
