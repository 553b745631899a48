// Asks for the token of the console, once: a cookie then stands for it.
const $ = (id) => document.getElementById(id);

$("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("wrong").textContent = "";
  try {
    const headers = { "Content-Type": "application/json", "X-Newnormal": "console" };
    const reply = await fetch("/login", { method: "POST", headers, body: JSON.stringify({ token: $("token").value }) });
    if (reply.ok) return location.reload();
    $("wrong").textContent = reply.status === 401 ? "This is not the token." : `The console refuses this: ${(await reply.json()).detail}`;
  } catch {
    $("wrong").textContent = "The console does not answer. Is it still running?";
  }
  $("token").select();
});
