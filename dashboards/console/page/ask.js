// Questions to the console's own server.

export async function ask(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) for (const one of [value].flat()) query.append(name, one);
  const reply = await fetch(`${path}?${query}`);
  const body = await reply.json();
  if (!reply.ok) throw new Error(typeof body.code === "string" ? body.code : typeof body.detail === "string" ? body.detail : `HTTP ${reply.status}`);
  return body;
}
