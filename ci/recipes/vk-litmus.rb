class VkLitmus < Formula
  desc "@SUMMARY@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]
  depends_on :linux
  on_intel do
    url "@REPOSITORY@/releases/download/v@VERSION@/vk-litmus-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
    sha256 "@SHA256:x86_64-unknown-linux-gnu@"
  end
  on_arm do
    url "@REPOSITORY@/releases/download/v@VERSION@/vk-litmus-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
    sha256 "@SHA256:aarch64-unknown-linux-gnu@"
  end

  def install
    bin.install "bin/vk-litmus"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/vk-litmus"
    zsh_completion.install "share/zsh/site-functions/_vk-litmus"
    fish_completion.install "share/fish/vendor_completions.d/vk-litmus.fish"
    doc.install Dir["share/doc/vk-litmus/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/vk-litmus --version")
    assert_match "does not hold", shell_output("#{bin}/vk-litmus check mp/MP+rel-acq")
  end
end
