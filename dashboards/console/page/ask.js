// Questions to the console's own server.

export async function ask(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) for (const one of [value].flat()) query.append(name, one);
  return answer(await fetch(`${path}?${query}`));
}

// The header is one that pages of other sites cannot send.
export async function tell(path, body) {
  const headers = { "Content-Type": "application/json", "X-Newnormal": "console" };
  const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  return answer(reply, (found) => `${found.code}: ${found.detail}`);
}

async function answer(reply, wrong = (found) => found.code) {
  if (reply.status === 401) location.reload(); // the page that asks for the token comes in its place
  const body = await reply.json();
  if (!reply.ok) throw new Error(typeof body.code === "string" ? wrong(body) : typeof body.detail === "string" ? body.detail : `HTTP ${reply.status}`);
  return body;
}
