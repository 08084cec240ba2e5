// Links: the state of the page in the fragment of its address, as `#v1=` and compressed JSON in base64url. Links to a page
// inside another one start with `#embed&v1=`.

const VERSION = "v1";
const MOST_BYTES = 256 * 1024;

async function through(stream, bytes) {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  const reader = piped.getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    // A short link can expand to a text of any size.
    if (size > MOST_BYTES) {
      await reader.cancel();
      throw new Error(`the link holds more than ${MOST_BYTES / 1024} KiB`);
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function toBase64(bytes) {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

// Returns the fragment of a state, or null if the state is too large for a link.
export async function encode(state, isEmbedded) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  if (bytes.length > MOST_BYTES) return null;
  return `#${isEmbedded ? "embed&" : ""}${VERSION}=${toBase64(await through(new CompressionStream("deflate-raw"), bytes))}`;
}

// Returns the state of a fragment, or null if the fragment is none of this page's links.
export async function decode(fragment) {
  const match = /^#(?:embed&)?(v\d+)=(.*)$/.exec(fragment);
  if (!match) return null;
  const [, version, data] = match;
  if (version !== VERSION) {
    throw new Error(`the link is of version ${version}, and this page reads ${VERSION}: open it with a newer page`);
  }
  let state;
  try {
    const bytes = await through(new DecompressionStream("deflate-raw"), fromBase64(data));
    state = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new Error(`the link is damaged (${error.message}): copy it again, whole`);
  }
  if (typeof state !== "object" || state === null || typeof state.text !== "string") {
    throw new Error("the link is damaged (no text of a test): copy it again, whole");
  }
  return state;
}
