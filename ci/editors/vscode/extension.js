// Starts `vk-litmus lsp` for litmus tests, models, expectations and shaders.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SHADERS = ["glsl", "hlsl", "wgsl", "slang", "spirv", "vk-litmus-shader"];
const TEXTS = ["litmus", "cat", "vk-litmus-expectations"];

let client;

exports.activate = async () => {
  const settings = workspace.getConfiguration("vk-litmus");
  const files = ["**/*.case.toml", "**/*.stress.toml", "**/suites/*.txt", "**/*.test"];
  client = new LanguageClient(
    "vk-litmus",
    "vk-litmus",
    { command: settings.get("program"), args: ["lsp"] },
    {
      documentSelector: [
        ...[...TEXTS, ...SHADERS].map((language) => ({ language })),
        ...files.map((pattern) => ({ scheme: "file", pattern })),
      ],
      initializationOptions: {
        lint: settings.get("lint"),
        race: settings.get("race"),
        checkSeconds: settings.get("checkSeconds"),
        raceSeconds: settings.get("raceSeconds"),
        raceArguments: settings.get("raceArguments"),
        include: settings.get("include"),
      },
    },
  );
  await client.start();
};

exports.deactivate = () => client?.stop();
