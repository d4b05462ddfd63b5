/* The status page: one file, no script from elsewhere, live by the event stream. */
#include "server/private.h"

static const char head[] =
	"<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>dais</title><style>"
	":root{color-scheme:light dark;--line:#8884;--dim:#888}"
	"body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
	"h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}"
	"table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line)}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}code{font-size:.95em}"
	".dim{color:var(--dim)}#live{font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap}"
	"</style></head><body>";

static const char signed_out[] =
	"<h1>dais</h1><p>The server is running. This browser is not signed in.</p>"
	"<p>Open a fresh sign-in link with <code>dais open</code> on this machine.</p></body></html>";

static const char link_ended[] =
	"<h1>dais</h1><p>This sign-in link was used already, or has ended: each works once, for ten minutes.</p>"
	"<p>Open a fresh one with <code>dais open</code> on the machine of the server.</p></body></html>";

static const char signed_in[] =
	"<h1>dais <span class=\"dim\" id=\"version\"></span></h1><p class=\"dim\" id=\"state\">connecting…</p>"
	"<h2>Projects</h2><table><thead><tr><th>Project</th><th>Role</th><th class=\"n\">queue</th>"
	"<th class=\"n\">work</th><th class=\"n\">review</th><th class=\"n\">blocked</th><th class=\"n\">done</th></tr></thead>"
	"<tbody id=\"projects\"></tbody></table>"
	"<h2>In progress</h2><table><tbody id=\"active\"></tbody></table>"
	"<div id=\"questions\" hidden><h2>Agents ask</h2><table><tbody id=\"asked\"></tbody></table><p class=\"dim\" id=\"said\"></p></div>"
	"<h2>Live</h2><div id=\"live\"></div>"
	"<script nonce=\"NONCE\">"
	"const $=id=>document.getElementById(id);"
	"const cell=(row,text,cls)=>{const td=document.createElement('td');td.textContent=text===undefined?'':text;if(cls)td.className=cls;row.append(td)};"
	"async function read(args){const r=await fetch('/api/v1/ops/items_read',{method:'POST',headers:{'content-type':'application/json'},"
	"body:JSON.stringify(args)});if(r.status===401){location.reload();return null}const j=await r.json();return j.ok?j.data:null}"
	"async function draw(){const o=await read({select:'overview',limit:100});if(!o)return;$('projects').replaceChildren();"
	"for(const p of o.roots||[]){const r=document.createElement('tr');cell(r,p.title);cell(r,p.role);"
	"for(const k of['queue','work','review','blocked','terminal'])cell(r,(p.childCounts||{})[k]||0,'n');$('projects').append(r)}"
	"const c=await read({select:'context',limit:20});$('active').replaceChildren();"
	"for(const i of(c&&c.active)||[]){const r=document.createElement('tr');cell(r,i.title);cell(r,i.statusLabel||i.role);"
	"cell(r,i.id.slice(0,8),'dim');$('active').append(r)}}"
	"async function reply(id,body){const r=await fetch('/api/v1/threads/requests/'+id.split(':').pop(),{method:'POST',"
	"headers:{'content-type':'application/json'},body:JSON.stringify(body)});const j=await r.json();"
	"$('said').textContent=j.ok?'':j.error.message;ask()}"
	"const button=(td,text,act)=>{const b=document.createElement('button');b.textContent=text;b.onclick=act;td.append(b,' ')};"
	"function form(td,q){const fields={};for(const k of q.prompt.questions||[]){const l=document.createElement('label');"
	"const i=document.createElement('input');i.placeholder=(k.options||[]).map(o=>o.label||o.value).join(', ');fields[k.id]=i;"
	"l.append(k.text+' ',i);td.append(l,' ')}button(td,'Answer',()=>{const answers={};for(const k in fields)answers[k]=fields[k].value;"
	"reply(q.id,{answers})})}"
	"async function ask(){const r=await fetch('/api/v1/threads/requests');if(!r.ok)return;const j=await r.json();"
	"$('questions').hidden=!j.data.requests.length&&!$('said').textContent;$('asked').replaceChildren();"
	"for(const q of j.data.requests){const row=document.createElement('tr');cell(row,q.threadTitle);"
	"cell(row,((q.prompt||{}).title||'')+' '+((q.prompt||{}).detail||''));const td=document.createElement('td');row.append(td);"
	"if(q.kind==='user-input')form(td,q);else{button(td,'Allow',()=>reply(q.id,{decision:'accept'}));"
	"button(td,'Allow in this session',()=>reply(q.id,{decision:'accept-session'}))}"
	"button(td,'Decline',()=>reply(q.id,{decision:'decline'}));$('asked').append(row)}}"
	"let due=0;function soon(){if(!due)due=setTimeout(()=>{due=0;draw()},300)}"
	"fetch('/api/v1/info').then(r=>r.json()).then(i=>{$('version').textContent=i.version});"
	"const es=new EventSource('/api/v1/events');es.onopen=()=>{$('state').textContent='live';draw();ask()};"
	"es.addEventListener('runtime-request.updated',ask);"
	"es.onerror=()=>{$('state').textContent='reconnecting…'};"
	"const show=e=>{const d=JSON.parse(e.data);const line=document.createElement('div');"
	"line.textContent=new Date(d.modifiedAt||Date.now()).toLocaleTimeString()+'  '+d.event+'  '+(d.itemId||'').slice(0,8)+'  '+(d.newRole||'');"
	"$('live').prepend(line);while($('live').childElementCount>40)$('live').lastChild.remove();soon()};"
	"for(const t of['item.created','item.updated','item.advanced','item.deleted','item.reparented','note.upserted','note.deleted',"
	"'dependency.added','dependency.removed','run.opened','run.closed'])es.addEventListener(t,show);"
	"</script></body></html>";

static void reply_page(struct http_exchange *x, int status, struct str nonce, struct str page)
{
	struct http_field fields[] = {
		{"Content-Type", STR("text/html; charset=utf-8")},
		{"Cache-Control", STR("no-store")},
		{"X-Content-Type-Options", STR("nosniff")},
		{"X-Frame-Options", STR("DENY")},
		{"Referrer-Policy", STR("no-referrer")},
		{"Content-Security-Policy",
			str_printf(http_arena(x),
				"default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'nonce-%.*s'; "
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
				STRF(nonce))},
	};

	http_reply(x, status, fields, sizeof(fields) / sizeof(fields[0]), page);
}

void page_status(struct server *server, struct http_exchange *x, bool is_signed_in)
{
	struct arena *arena = http_arena(x);
	struct str nonce = random_token(arena, 16);
	const char *at = strstr(signed_in, "NONCE");
	struct buf out;

	(void)server;
	buf_init(&out, arena, SIZE_MAX);
	buf_add_str(&out, str_of(head));
	if (is_signed_in) {
		buf_add(&out, signed_in, (size_t)(at - signed_in));
		buf_add_str(&out, nonce);
		buf_add_str(&out, str_of(at + strlen("NONCE")));
	} else {
		buf_add_str(&out, str_of(signed_out));
	}
	reply_page(x, 200, nonce, buf_str(&out));
}

void page_link_ended(struct http_exchange *x, int status)
{
	struct arena *arena = http_arena(x);

	reply_page(x, status, random_token(arena, 16), str_join(arena, str_of(head), str_of(link_ended)));
}
